-- API keys, by id.

-- name: insert_key
-- :created_by: id of the key that made it.
insert into api_key (
  id, hash, is_token, role, is_read_only, tenant_id, payloads, description, owner, rate_per_second, expires_at,
  created_by
)
values (
  :id::uuid, :hash::bytea, :is_token::boolean, :role::text, :is_read_only::boolean, :tenant?::text,
  :payloads::boolean, :description?::text, :owner?::text, :rate_per_second?::float8, :expires_at?::timestamptz, :created_by?::text
)

-- name: count_keys
-- Keys that work. api_key_by_tenant.
-- not null: all
select count(*)
from api_key
where tenant_id = :tenant::text
  and is_token = :is_token::boolean
  and revoked_at is null
  and (expires_at is null or expires_at > now())

-- name: find_key_expiry
-- Primary key.
select expires_at
from api_key
where id = :id::uuid

-- name: load_key
-- Primary key.
-- not null: id, is_token, role, is_read_only, payloads, created_at
-- row: key
select
  id,
  is_token,
  role,
  is_read_only,
  tenant_id,
  payloads,
  description,
  owner,
  rate_per_second,
  expires_at,
  created_at,
  created_by,
  revoked_at,
  last_used_at
from api_key
where id = :id::uuid
  and (:tenant?::text is null or tenant_id = :tenant)
  and (:is_token?::boolean is null or is_token = :is_token)

-- name: list_keys
-- Primary key, or api_key_by_tenant.
-- not null: id, is_token, role, is_read_only, payloads, created_at
-- row: key
select
  id,
  is_token,
  role,
  is_read_only,
  tenant_id,
  payloads,
  description,
  owner,
  rate_per_second,
  expires_at,
  created_at,
  created_by,
  revoked_at,
  last_used_at
from api_key
where id > :after::uuid
  and (:tenant?::text is null or tenant_id = :tenant)
  and is_token = :is_token::boolean
  and revoked_at is null
  and (not is_token or expires_at > now())
order by id
limit :limit::integer

-- name: revoke_key
-- Primary key. No row: it is revoked already, or there is none.
-- not null: all
update api_key
set revoked_at = now()
where id = :id::uuid
  and (:tenant?::text is null or tenant_id = :tenant)
  and is_token = :is_token::boolean
  and revoked_at is null
returning id

-- name: delete_old_tokens
-- Tokens of the tenant that ended so long ago that no audit entry refers to them. At most 100 at a time, so that the
-- caller does not wait. api_key_by_tenant.
delete from api_key
where id = any (array(
    select id
    from api_key
    where tenant_id = :tenant::text
      and is_token
      and expires_at < now() - interval '400 days'
    limit 100
  ))
