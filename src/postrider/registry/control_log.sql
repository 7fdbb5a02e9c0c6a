-- Following the registry's changes.

-- name: current_version
-- One row, always there. Locks nothing: sees the latest committed change.
-- not null: all
select version
from registry_version

-- name: read_changes
-- Primary key of control_log. Locks nothing.
-- not null: version, kind
select
  version,
  kind,
  tenant_id,
  endpoint_id,
  delivery_id
from control_log
where version > :after::bigint
order by version
limit :limit::integer

-- name: record_change
-- Last statement of every transaction that changes the registry: locks registry_version until the commit.
select record_change(:kind::text, :tenant::text, :endpoint?::uuid)

-- name: note_common_change
-- The same for what belongs to no tenant.
select record_change(:kind::text, null)
