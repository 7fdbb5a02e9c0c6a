-- Following the registry's changes.

-- name: current_version
-- One row, always there. Locks nothing: sees the latest committed change.
select version
from registry_version

-- name: read_changes
-- $1 the last version seen, $2 how many at most. Primary key of control_log. Locks nothing.
select
  version,
  kind,
  tenant_id,
  endpoint_id,
  delivery_id
from control_log
where version > $1::bigint
order by version
limit $2::integer

-- name: note_change
-- $1 kind, $2 tenant, $3 endpoint or null. Last statement of every transaction that changes the registry: locks
-- registry_version until the commit.
select note_change($1::text, $2::text, $3::uuid)

-- name: note_common_change
-- $1 kind. The same for what belongs to no tenant.
select note_change($1::text, null)
