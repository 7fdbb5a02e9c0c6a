-- name: events_after
-- $1 tenant, $2 ids above, $3 rows; the oldest first, with the bytes that are sent. Index: event_by_tenant.
select e.id, coalesce(e.public_id, public_id_of('evt', e.id)), e.type, e.created_at, e.body
from event e
where e.tenant_id = $1::text
  and e.id > $2::uuid
  and (e.main_id is null or e.main_id = e.id)
order by e.id
limit $3::integer

-- name: event_ids_between
-- $1 tenant, $2 ids above, $3 up to, $4 rows; the oldest first. Index only: event_by_tenant.
select e.id
from event e
where e.tenant_id = $1::text
  and e.id > $2::uuid
  and e.id <= $3::uuid
order by e.id
limit $4::integer

-- name: streamed_events_of_ids
-- As events_after, of these: $1 tenant, $2 the first and $3 the last of $4, ids in order. Key of the partitions in range.
select e.id, coalesce(e.public_id, public_id_of('evt', e.id)), e.type, e.created_at, e.body
from event e
where e.tenant_id = $1::text
  and e.id >= $2::uuid
  and e.id <= $3::uuid
  and e.id = any ($4::uuid[])
order by e.id
