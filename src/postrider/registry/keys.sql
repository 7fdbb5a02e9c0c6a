-- API keys, by hash.

-- name: find_key
-- $1 hash. api_key_hash_key (unique).
select
  hash,
  id,
  role,
  tenant_id,
  payloads,
  rate_per_second
from api_key
where hash = $1::bytea
  and revoked_at is null
  and (expires_at is null or expires_at > now())

-- name: note_use
-- $1 hash. api_key_hash_key (unique). At most one write per key and minute.
update api_key
set last_used_at = now()
where hash = $1::bytea
  and revoked_at is null
  and (last_used_at is null or last_used_at < now() - interval '1 minute')

-- name: lock_keys
-- No parameters. Nodes that start at once decide one after the other.
select version
from registry_version
for update

-- name: has_admin_key
-- No parameters. Scans api_key, which is small.
select exists (
  select
  from api_key
  where role = 'admin'
    and tenant_id is null
    and revoked_at is null
    and (expires_at is null or expires_at > now())
)

-- name: insert_admin_key
-- $1 id, $2 hash, $3 description. A key that was revoked works again when it is configured again. No row: nothing
-- had to be changed.
insert into api_key (id, hash, role, description)
values ($1::uuid, $2::bytea, 'admin', $3::text)
on conflict (hash) do update
set
  role = 'admin',
  tenant_id = null,
  description = excluded.description,
  expires_at = null,
  revoked_at = null
where api_key.revoked_at is not null
  or api_key.role <> 'admin'
  or api_key.tenant_id is not null
  or api_key.expires_at is not null
  or api_key.description is distinct from excluded.description
returning id, description

-- name: revoke_other_configured_keys
-- $1 hash of the one that stays, $2 description of configured keys. Scans api_key, which is small.
update api_key
set revoked_at = now()
where description = $2::text
  and hash <> $1::bytea
  and revoked_at is null
returning id, description

-- name: note_keys
-- No parameters. As note_change, for what belongs to no tenant.
select note_change('key', null)
