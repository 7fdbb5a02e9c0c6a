-- API keys, by hash.

-- name: find_key
-- api_key_hash_key (unique). Microseconds until it expires, if that is within a day.
-- not null: all but tenant_id, rate_per_second, expires_in_us
select
  hash,
  id,
  role,
  is_token,
  is_read_only,
  tenant_id,
  payloads,
  rate_per_second,
  case
    when expires_at < now() + interval '1 day'
      then (extract(epoch from expires_at - now()) * 1000000)::bigint
  end as expires_in_us
from api_key
where hash = :hash::bytea
  and revoked_at is null
  and (expires_at is null or expires_at > now())

-- name: note_use
-- api_key_hash_key (unique). At most one write per key and minute. A key that another transaction has locked is
-- skipped: the look-ups of all keys wait behind this one.
update api_key
set last_used_at = now()
where id = (
    select id
    from api_key
    where hash = :hash::bytea
      and revoked_at is null
      and (last_used_at is null or last_used_at < now() - interval '1 minute')
    for update skip locked
  )

-- name: lock_keys
-- Nodes that start at the same time decide one at a time.
-- not null: all
select version
from registry_version
for update

-- name: has_admin_key
-- Scans api_key, which is small.
-- not null: all
select exists (
  select
  from api_key
  where role = 'admin'
    and tenant_id is null
    and revoked_at is null
    and (expires_at is null or expires_at > now())
) as has_admin_key

-- name: insert_admin_key
-- A revoked key works again once it is configured again. No row if nothing had to be changed.
-- not null: all
-- row: described_key
insert into api_key (id, hash, role, description)
values (:id::uuid, :hash::bytea, 'admin', :description::text)
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
-- All but the one with :kept_hash. Scans api_key, which is small.
-- not null: all
-- row: described_key
update api_key
set revoked_at = now()
where description = :description::text
  and hash <> :kept_hash::bytea
  and revoked_at is null
returning id, description

-- name: note_keys
-- As record_change, for what belongs to no tenant.
select record_change('key', null)
