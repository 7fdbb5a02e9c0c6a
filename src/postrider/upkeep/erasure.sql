-- Erasing payloads. What becomes of pending deliveries is in the function.

-- name: erase_event
-- $1 event. Locks it, and the queue rows that it cancels.
select erased, canceled
from erase_payloads(array[$1::uuid])

-- name: erase_next
-- The next events of a tenant: $1 tenant, $2 the event behind which to begin, $3 how many. Index event_by_tenant.
-- The last one that was looked at (null: there are no more), how many were erased, how many deliveries canceled.
with batch as materialized (
  select id
  from event
  where tenant_id = $1::text
    and id > $2::uuid
  order by id
  limit $3::integer
)
select (select id from batch order by id desc limit 1), e.erased, e.canceled
from erase_payloads((select array_agg(id) from batch)) as e
