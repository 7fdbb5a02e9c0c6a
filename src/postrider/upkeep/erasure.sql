-- Erasing payloads. The function cancels pending deliveries.

-- name: erase_event
-- Locks the event, and the queue rows that it cancels.
-- not null: all
select erased, canceled
from erase_payloads(array[:event::uuid])

-- name: erase_next
-- The next events of a tenant. Returns the last of them (null: there are no more), how many were erased and how many
-- deliveries were canceled. Index event_by_tenant.
-- not null: erased, canceled
with batch as materialized (
  select id
  from event
  where tenant_id = :tenant::text
    and id > :after::uuid
  order by id
  limit :rows::integer
)
select (select id from batch order by id desc limit 1) as last_id, e.erased, e.canceled
from erase_payloads((select array_agg(id) from batch)) as e
