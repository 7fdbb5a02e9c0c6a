-- Secrets of one endpoint. Changes lock the endpoint's row first (lock_endpoint).

-- name: insert_secret
insert into endpoint_secret (id, endpoint_id, sealed)
values (:id::uuid, :endpoint::uuid, :sealed::bytea)

-- name: load_secrets
-- The active ones, the current one first. endpoint_secret_by_endpoint and the primary key of endpoint.
-- not null: all but expires_at
select
  endpoint_secret.id,
  endpoint_secret.sealed,
  endpoint_secret.created_at,
  endpoint_secret.expires_at,
  endpoint.signature
from endpoint_secret
join endpoint on endpoint.id = endpoint_secret.endpoint_id
where endpoint_secret.endpoint_id = :endpoint::uuid
  and (endpoint_secret.expires_at is null or endpoint_secret.expires_at > now())
order by endpoint_secret.expires_at is null desc, endpoint_secret.id desc

-- name: start_overlap
-- endpoint_secret_by_endpoint.
update endpoint_secret
set expires_at = now() + make_interval(secs => :seconds::float8)
where endpoint_id = :endpoint::uuid
  and expires_at is null

-- name: delete_expired_secrets
-- endpoint_secret_by_endpoint.
delete from endpoint_secret
where endpoint_id = :endpoint::uuid
  and expires_at <= now()

-- name: delete_secret
-- Never the current one. Primary key.
delete from endpoint_secret
where id = :id::uuid
  and endpoint_id = :endpoint::uuid
  and expires_at is not null
