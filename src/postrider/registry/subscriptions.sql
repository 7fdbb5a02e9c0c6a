-- Subscriptions of one endpoint.

-- name: delete_other_subscriptions
-- subscription_by_endpoint.
delete from subscription
where endpoint_id = :endpoint::uuid
  and pattern <> all(:patterns::text[])

-- name: upsert_subscriptions
-- Arrays of one length; the elements of :versions are joined by commas, or null.
insert into subscription (tenant_id, pattern, endpoint_id, enabled, versions)
select
  :tenant::text,
  given.pattern,
  :endpoint::uuid,
  given.enabled,
  string_to_array(given.versions, ',')
from unnest(:patterns::text[], :enabled::boolean[], :versions::text[]) as given (pattern, enabled, versions)
on conflict (tenant_id, pattern, endpoint_id) do update
set
  enabled = excluded.enabled,
  versions = excluded.versions

-- name: insert_missing_patterns
insert into subscription (tenant_id, pattern, endpoint_id)
select
  :tenant::text,
  given.pattern,
  :endpoint::uuid
from unnest(:patterns::text[]) as given (pattern)
on conflict (tenant_id, pattern, endpoint_id) do nothing

-- name: find_endpoint_id
-- endpoint_by_tenant.
-- not null: all
select id
from endpoint
where tenant_id = :tenant::text
  and public_id = :public_id::text
  and status <> 'deleted'

-- name: lock_endpoint
-- endpoint_by_tenant; locks the row against other changes, not against references.
-- not null: all
select
  id,
  revision
from endpoint
where tenant_id = :tenant::text
  and public_id = :public_id::text
  and status <> 'deleted'
for no key update

-- name: bump_revision
-- Primary key; the row is locked already. Subscriptions are part of the endpoint's document.
update endpoint
set
  revision = revision + 1,
  updated_at = now()
where id = :id::uuid

-- name: load_subscriptions
-- subscription_by_endpoint.
-- not null: all but versions
select
  pattern,
  enabled,
  versions
from subscription
where endpoint_id = :endpoint::uuid
order by pattern

-- name: update_subscription
-- :versions are joined by commas. subscription_by_endpoint.
update subscription
set
  enabled = :enabled::boolean,
  versions = string_to_array(:versions?::text, ',')
where endpoint_id = :endpoint::uuid
  and pattern = :pattern::text
