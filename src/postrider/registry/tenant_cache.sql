-- Limits that publishing obeys.

-- name: load_tenant_limits
-- $1 id. Primary key.
select
  status,
  publish_rate_per_second,
  payload_bytes_max
from tenant
where id = $1::text
  and status <> 'deleted'
