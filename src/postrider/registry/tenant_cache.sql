-- Limits that publishing obeys.

-- name: load_tenant_limits
-- Primary key.
-- not null: status
select
  status,
  publish_rate_per_second,
  payload_bytes_max
from tenant
where id = :id::text
  and status <> 'deleted'
