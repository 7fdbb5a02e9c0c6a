-- name: events_after
-- $1 tenant, $2 ids above, $3 rows; the oldest first, with the bytes that are sent. Index: event_by_tenant.
select e.id, coalesce(e.outside_id, outside_of('evt', e.id)), e.type, e.created_at, e.body
from event e
where e.tenant_id = $1::text
  and e.id > $2::uuid
order by e.id
limit $3::integer
