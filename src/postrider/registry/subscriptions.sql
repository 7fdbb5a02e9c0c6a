-- Subscriptions of one endpoint.

-- name: delete_other_subscriptions
-- $1 endpoint, $2 patterns to keep. subscription_by_endpoint.
delete from subscription
where endpoint_id = $1::uuid
  and pattern <> all($2::text[])

-- name: upsert_subscriptions
-- $1 tenant, $2 endpoint, $3 patterns, $4 enabled, $5 versions joined by commas or null: arrays of one length.
insert into subscription (tenant_id, pattern, endpoint_id, enabled, versions)
select
  $1::text,
  given.pattern,
  $2::uuid,
  given.enabled,
  string_to_array(given.versions, ',')
from unnest($3::text[], $4::boolean[], $5::text[]) as given (pattern, enabled, versions)
on conflict (tenant_id, pattern, endpoint_id) do update
set
  enabled = excluded.enabled,
  versions = excluded.versions

-- name: insert_missing_patterns
-- $1 tenant, $2 endpoint, $3 patterns.
insert into subscription (tenant_id, pattern, endpoint_id)
select
  $1::text,
  given.pattern,
  $2::uuid
from unnest($3::text[]) as given (pattern)
on conflict (tenant_id, pattern, endpoint_id) do nothing

-- name: find_endpoint_id
-- $1 tenant, $2 outside id. endpoint_by_outside_id.
select id
from endpoint
where tenant_id = $1::text
  and outside_id = $2::text
  and status <> 'deleted'

-- name: lock_endpoint
-- $1 tenant, $2 outside id. endpoint_by_outside_id; locks the row against other changes, not against references.
select
  id,
  revision
from endpoint
where tenant_id = $1::text
  and outside_id = $2::text
  and status <> 'deleted'
for no key update

-- name: bump_revision
-- $1 endpoint. Primary key; the row is locked already. Subscriptions are part of the endpoint's document.
update endpoint
set
  revision = revision + 1,
  updated_at = now()
where id = $1::uuid

-- name: load_subscriptions
-- $1 endpoint. subscription_by_endpoint.
select
  pattern,
  enabled,
  versions
from subscription
where endpoint_id = $1::uuid
order by pattern

-- name: update_subscription
-- $1 endpoint, $2 pattern, $3 enabled, $4 versions joined by commas or null. subscription_by_endpoint.
update subscription
set
  enabled = $3::boolean,
  versions = string_to_array($4::text, ',')
where endpoint_id = $1::uuid
  and pattern = $2::text
