-- Secrets of one endpoint. Changes lock the endpoint's row first (lock_endpoint).

-- name: insert_secret
-- $1 id, $2 endpoint, $3 sealed.
insert into endpoint_secret (id, endpoint_id, sealed)
values ($1::uuid, $2::uuid, $3::bytea)

-- name: load_secrets
-- $1 endpoint; the active ones, the current one first. endpoint_secret_by_endpoint and the primary key of endpoint.
select
  endpoint_secret.id,
  endpoint_secret.sealed,
  endpoint_secret.created_at,
  endpoint_secret.expires_at,
  endpoint.signature
from endpoint_secret
join endpoint on endpoint.id = endpoint_secret.endpoint_id
where endpoint_secret.endpoint_id = $1::uuid
  and (endpoint_secret.expires_at is null or endpoint_secret.expires_at > now())
order by endpoint_secret.expires_at is null desc, endpoint_secret.id desc

-- name: start_overlap
-- $1 endpoint, $2 seconds. endpoint_secret_by_endpoint.
update endpoint_secret
set expires_at = now() + make_interval(secs => $2::float8)
where endpoint_id = $1::uuid
  and expires_at is null

-- name: delete_expired_secrets
-- $1 endpoint. endpoint_secret_by_endpoint.
delete from endpoint_secret
where endpoint_id = $1::uuid
  and expires_at <= now()

-- name: delete_secret
-- $1 endpoint, $2 secret; never the current one. Primary key.
delete from endpoint_secret
where id = $2::uuid
  and endpoint_id = $1::uuid
  and expires_at is not null
