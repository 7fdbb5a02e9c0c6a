-- API keys, by id.

-- name: insert_key
-- :created_by: id of the key that made it.
insert into api_key (id, hash, role, tenant_id, payloads, description, rate_per_second, expires_at, created_by)
values (
  :id::uuid, :hash::bytea, :role::text, :tenant?::text, :payloads::boolean, :description?::text,
  :rate_per_second?::float8, :expires_at?::timestamptz, :created_by?::text
)

-- name: count_keys
-- Keys that work. api_key_by_tenant.
-- not null: all
select count(*)
from api_key
where tenant_id = :tenant::text
  and revoked_at is null
  and (expires_at is null or expires_at > now())

-- name: find_key_expiry
-- Primary key.
select expires_at
from api_key
where id = :id::uuid

-- name: load_key
-- Primary key.
-- not null: id, role, payloads, created_at
-- row: key
select
  id,
  role,
  tenant_id,
  payloads,
  description,
  rate_per_second,
  expires_at,
  created_at,
  created_by,
  revoked_at,
  last_used_at
from api_key
where id = :id::uuid
  and (:tenant?::text is null or tenant_id = :tenant)

-- name: list_keys
-- Primary key, or api_key_by_tenant.
-- not null: id, role, payloads, created_at
-- row: key
select
  id,
  role,
  tenant_id,
  payloads,
  description,
  rate_per_second,
  expires_at,
  created_at,
  created_by,
  revoked_at,
  last_used_at
from api_key
where id > :after::uuid
  and (:tenant?::text is null or tenant_id = :tenant)
  and revoked_at is null
order by id
limit :limit::integer

-- name: revoke_key
-- Primary key. No row: it is revoked already, or there is none.
-- not null: all
update api_key
set revoked_at = now()
where id = :id::uuid
  and (:tenant?::text is null or tenant_id = :tenant)
  and revoked_at is null
returning id
