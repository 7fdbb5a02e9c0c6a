-- API keys, by id.

-- name: insert_key
-- $1 id, $2 hash, $3 role, $4 tenant or null, $5 payloads, $6 description, $7 rate, $8 expiry, $9 id of the key that
-- made it.
insert into api_key (id, hash, role, tenant_id, payloads, description, rate_per_second, expires_at, created_by)
values (
  $1::uuid, $2::bytea, $3::text, $4::text, $5::boolean, $6::text, $7::float8, $8::timestamptz, $9::text
)

-- name: find_key_expiry
-- $1 id. Primary key.
select expires_at
from api_key
where id = $1::uuid

-- name: load_key
-- $1 id, $2 tenant or null. Primary key.
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
where id = $1::uuid
  and ($2::text is null or tenant_id = $2)

-- name: list_keys
-- $1 the last id of the page before, $2 limit, $3 tenant or null. Primary key, or api_key_by_tenant.
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
where id > $1::uuid
  and ($3::text is null or tenant_id = $3)
  and revoked_at is null
order by id
limit $2::integer

-- name: revoke_key
-- $1 id, $2 tenant or null. Primary key. No row: it is revoked already, or there is none.
update api_key
set revoked_at = now()
where id = $1::uuid
  and ($2::text is null or tenant_id = $2)
  and revoked_at is null
returning id
