-- The events of one tenant, for a stream.

-- part: streamed_events
select e.id, coalesce(e.public_id, public_id_of('evt', e.id)) as public_id, e.type, e.created_at, e.body
from event e
where e.tenant_id = :tenant::text

-- name: events_after
-- Oldest first, with their bodies. Index: event_by_tenant.
-- not null: all
-- row: streamed_event
{{streamed_events}}
  and e.id > :after::uuid
  and (e.main_id is null or e.main_id = e.id)
order by e.id
limit :rows::integer

-- name: event_ids_between
-- Oldest first. Index only: event_by_tenant.
-- not null: all
select e.id
from event e
where e.tenant_id = :tenant::text
  and e.id > :after::uuid
  and e.id <= :up_to::uuid
order by e.id
limit :rows::integer

-- name: streamed_events_of_ids
-- `smallest` and `largest` of the IDs limit the partitions that are read. Index: their key.
-- not null: all
-- row: streamed_event
{{streamed_events}}
  and e.id >= :smallest::uuid
  and e.id <= :largest::uuid
  and e.id = any (:events::uuid[])
order by e.id
