-- What a replay of a range matches, some at a time, behind a cursor. Each statement looks at a bounded number of rows
-- and returns at least one row: how many it looked at, the last of them, and a match, if any. Custom plans: the filters
-- that are null must not keep the planner from an index.

-- name: failed_candidates
-- Unresolved dead letters in the order of their delivery ids.
--   $1 tenant, $2 endpoint or null, $3 patterns of types or null, $4 causes or null, $5 delivery ids or null,
--   $6 the delivery behind which to begin, $7 ids below this one, $8 how many to look at, $9 how many to return
-- Indexes: dead_letter_by_endpoint or dead_letter_by_tenant, the keys of event and endpoint.
with scan as materialized (
  select d.delivery_id, d.event_id, d.endpoint_id, d.cause, d.resolved_at
  from dead_letter d
  where d.tenant_id = $1::text
    and ($2::uuid is null or d.endpoint_id = $2)
    and ($5::uuid[] is null or d.delivery_id = any ($5))
    and d.delivery_id > $6::uuid
    and d.delivery_id < $7::uuid
  order by d.delivery_id
  limit $8::integer
),
match as (
  select s.delivery_id, s.event_id, s.endpoint_id
  from scan s
  join endpoint e on e.id = s.endpoint_id
  cross join lateral (
    select v.type
    from event v
    where v.id = s.event_id
      and v.erased_at is null
    offset 0
  ) as v
  where s.resolved_at is null
    and e.status in ('active', 'paused')
    and ($3::text[] is null or type_patterns(v.type) && $3)
    and ($4::text[] is null or s.cause = any ($4))
  order by s.delivery_id
  limit $9::integer
),
looked_at as (
  select count(*) as rows, (select s.delivery_id from scan s order by s.delivery_id desc limit 1) as last
  from scan
)
select l.rows, l.last, m.event_id, m.endpoint_id, m.delivery_id
from looked_at l
left join match m on true
order by m.delivery_id

-- name: event_candidates
-- Events and the endpoints that want them by the subscriptions of now, in the order of event and endpoint.
--   $1 tenant, $2 endpoint or null, $3 patterns of types or null, $4 whether only what never had a delivery,
--   $5 the event to begin with, $6 and behind which of its endpoints, $7 events below this one,
--   $8 how many to look at, $9 how many to return
-- A match is the row of the version that the endpoint wants, and behind the endpoint the event itself.
-- A delivery that is still in the queue is not made again. Indexes: event_by_tenant, subscription_pkey, the keys of
-- endpoint, queue, attempt and replayed. A limit in each step: one event may have very many endpoints.
with scan as materialized (
  select v.id, v.type, v.version, v.main_id, v.erased_at
  from event v
  where v.tenant_id = $1::text
    and v.id >= $5::uuid
    and v.id < $7::uuid
    and (v.main_id is null or v.main_id = v.id)
  order by v.id
  limit $8::integer
),
match as (
  select s.id as event_id, t.endpoint_id, t.version_id
  from scan s
  cross join lateral (
    select distinct on (e.id) e.id as endpoint_id, w.id as version_id
    from subscription b
    join endpoint e on e.id = b.endpoint_id
    cross join lateral (
      select (left(replace(s.id::text, '-', ''), 20) || e.delivery_tail)::uuid as id
    ) as first
    cross join lateral (select version_for(s.id, s.main_id, s.version, b.versions) as id) as w
    where b.tenant_id = $1::text
      and b.pattern = any (type_patterns(s.type))
      and b.enabled
      and w.id is not null
      and ($2::uuid is null or b.endpoint_id = $2)
      and (s.id > $5::uuid or b.endpoint_id > $6::uuid)
      and e.status in ('active', 'paused')
      and not exists (select from queue q where q.bucket = e.bucket and q.id = first.id)
      and (not $4::boolean
           or not exists (select from attempt a where a.delivery_id = first.id)
              and not exists (select from replayed r where r.event_id = w.id and r.endpoint_id = e.id))
    order by e.id, b.versions is null, w.id < s.id, w.id
    limit $9::integer
  ) as t
  where s.erased_at is null
    and ($3::text[] is null or type_patterns(s.type) && $3)
    and not exists (select from fanout_task f where f.event_id = s.id)
  order by s.id, t.endpoint_id
  limit $9::integer
),
looked_at as (
  select count(*) as rows, (select s.id from scan s order by s.id desc limit 1) as last
  from scan
)
select l.rows, l.last, m.version_id, m.endpoint_id, m.event_id
from looked_at l
left join match m on true
order by m.event_id, m.endpoint_id
