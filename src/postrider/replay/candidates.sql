-- The matches of a range replay, some at a time, after a cursor. Each statement scans a limited number of rows and returns
-- at least one row: how many were scanned, the last of them, and a match, if any. `cursor_id` of a match is its place in
-- the order of the scan. Runs on connections with custom plans: a filter that is null must not keep the planner from using
-- an index.

-- name: failed_candidates
-- Unresolved dead letters in the order of their delivery IDs. Indexes: dead_letter_by_endpoint or dead_letter_by_tenant,
-- the keys of event and endpoint.
-- not null: scanned
-- row: candidate
with scan as materialized (
  select d.delivery_id, d.event_id, d.endpoint_id, d.cause, d.resolved_at
  from dead_letter d
  where d.tenant_id = :tenant::text
    and (:endpoint?::uuid is null or d.endpoint_id = :endpoint)
    and (:deliveries?::uuid[] is null or d.delivery_id = any (:deliveries))
    and d.delivery_id > :after::uuid
    and d.delivery_id < :before::uuid
  order by d.delivery_id
  limit :scanned_max::integer
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
    and (:event_types?::text[] is null or type_patterns(v.type) && :event_types)
    and (:causes?::text[] is null or s.cause = any (:causes))
  order by s.delivery_id
  limit :matches_max::integer
),
total as (
  select count(*) as scanned, (select s.delivery_id from scan s order by s.delivery_id desc limit 1) as last_id
  from scan
)
select t.scanned, t.last_id, m.delivery_id as cursor_id, m.event_id, m.endpoint_id, m.delivery_id as origin_id
from total t
left join match m on true
order by m.delivery_id

-- name: event_candidates
-- Events and the endpoints that are subscribed to them now, in the order of event and endpoint: from event `first` on, and
-- of that one only endpoints after `after_endpoint`. With `missing_only`, only endpoints that never had a delivery of the
-- event. A match has the row of the version that the endpoint wants (`event_id`) and the event itself (`cursor_id`).
-- A delivery that is still in the queue is not created again. Indexes: event_by_tenant, subscription_pkey, the keys of
-- endpoint, queue, attempt and replayed. Each step has a limit, because one event may have very many endpoints.
-- not null: scanned
-- row: candidate
with scan as materialized (
  select v.id, v.type, v.version, v.main_id, v.erased_at
  from event v
  where v.tenant_id = :tenant::text
    and v.id >= :first::uuid
    and v.id < :before::uuid
    and (v.main_id is null or v.main_id = v.id)
  order by v.id
  limit :scanned_max::integer
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
    where b.tenant_id = :tenant
      and b.pattern = any (type_patterns(s.type))
      and b.enabled
      and w.id is not null
      and (:endpoint?::uuid is null or b.endpoint_id = :endpoint)
      and (s.id > :first or b.endpoint_id > :after_endpoint::uuid)
      and e.status in ('active', 'paused')
      and not exists (select from queue q where q.bucket = e.bucket and q.id = first.id)
      and (not :missing_only::boolean
           or not exists (select from attempt a where a.delivery_id = first.id)
              and not exists (select from replayed r where r.event_id = w.id and r.endpoint_id = e.id))
    order by e.id, b.versions is null, w.id < s.id, w.id
    limit :matches_max::integer
  ) as t
  where s.erased_at is null
    and (:event_types?::text[] is null or type_patterns(s.type) && :event_types)
    and not exists (select from fanout_task f where f.event_id = s.id)
  order by s.id, t.endpoint_id
  limit :matches_max
),
total as (
  select count(*) as scanned, (select s.id from scan s order by s.id desc limit 1) as last_id
  from scan
)
select t.scanned, t.last_id, m.event_id as cursor_id, m.version_id as event_id, m.endpoint_id, null::uuid as origin_id
from total t
left join match m on true
order by m.event_id, m.endpoint_id
