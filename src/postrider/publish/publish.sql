-- Publishing: events, their queue rows and the line in the publish log, in one statement and one snapshot.

-- part: queue_matched
-- Queues the deliveries of the CTE `matched` (id, event_id, endpoint_id, tenant_id, bucket, is_strict, and place, the
-- order of the events), logs them, and returns them as `queued`. A strict endpoint numbers its deliveries without
-- gaps: its counter is locked until commit, so positions are in commit order.
--   :node        that passes the deliveries on in memory; nil: none does, and every owner must fetch them
--   :first_id, :last_id  all IDs of the deliveries lie in this range
ordered as (
  select m.event_id, m.id, m.endpoint_id, m.tenant_id, m.bucket,
         row_number() over (partition by m.endpoint_id order by m.place) as rank,
         count(*) over (partition by m.endpoint_id) as size
  from matched m
  where m.is_strict
),
counter as (
  insert into endpoint_position as p (endpoint_id, position)
  select o.endpoint_id, o.size
  from ordered o
  where o.rank = 1
  order by o.endpoint_id
  on conflict (endpoint_id) do update
    set position = p.position + excluded.position
  returning p.endpoint_id, p.position
),
queued_strict as (
  insert into queue (bucket, id, event_id, endpoint_id, tenant_id, position, due_at, created_at)
  select o.bucket, o.id, o.event_id, o.endpoint_id, o.tenant_id, c.position - o.size + o.rank,
         :created_at::timestamptz, :created_at::timestamptz
  from ordered o
  join counter c on c.endpoint_id = o.endpoint_id
  order by o.bucket, o.id
  returning event_id, id, endpoint_id, bucket, position
),
queued_free as (
  insert into queue (bucket, id, event_id, endpoint_id, tenant_id, due_at, created_at)
  select m.bucket, m.id, m.event_id, m.endpoint_id, m.tenant_id, :created_at::timestamptz, :created_at::timestamptz
  from matched m
  where not m.is_strict
  order by m.bucket, m.id
  returning event_id, id, endpoint_id, bucket, position
),
queued as materialized (
  select event_id, id, endpoint_id, bucket, position from queued_free
  union all
  select event_id, id, endpoint_id, bucket, position from queued_strict
),
logged as (
  insert into publish_log (node_id, first_id, last_id, buckets)
  select :node::uuid, :first_id::uuid, :last_id::uuid, array_agg(distinct q.bucket)
  from queued q
  having count(*) > 0
)

-- part: result
-- The result for an event.
case
  when i.is_unknown then 'unknown_tenant'
  when i.is_too_large then 'too_large'
  when i.is_wide then 'wide'
  else 'queued'
end

-- part: is_wide
-- Whether an event of tenant `t` is fanned out later, in chunks: the tenant has many endpoints or, if it has strict
-- ones, an older event is still being fanned out and this one queues after it.
t.endpoint_count > :wide_endpoints::integer
  or (t.strict_count > 0 and exists (select from fanout_task f where f.tenant_id = t.id))

-- name: publish
-- Writes a batch of events and one queue row per event and matching endpoint.
-- Events that share tenant, type and version share a fan-out plan; the endpoints of a plan are looked up once.
--   :plan_numbers and the tenant, type and version of each
--   :pattern_plans, :pattern_tenants, :patterns, :pattern_versions  each pattern that matches the type of each plan
--   :event_ids in order, the plan of each, the bytes of its data, the publisher's ID …, created_at as shown
--   :data_bytes_max      if the tenant has no limit of its own
--   :wide_endpoints      a tenant with more of them is fanned out in chunks
--
-- Returns at least one row per event: its result, how many deliveries a wide one will have, the tenant's publish rate, the
-- queue row, if any, and, if the plan may be remembered for publish_known, the tenant's revision and its limit of bytes.
-- Indexes: tenant_pkey, tenant_last_change_pkey, subscription_pkey, endpoint_pkey. Locks: the position rows of strict
-- endpoints, in order, until commit.
-- large
-- not null: event_id, result
with plan as materialized (
  select r.plan, r.tenant_id, r.type, r.version,
         t.publish_rate_per_second,
         coalesce(t.payload_bytes_max, :data_bytes_max::integer) as data_bytes_max,
         {{is_wide}} as is_wide,
         case when t.strict_count = 0 then v.version end as revision
  from unnest(:plan_numbers::integer[], :plan_tenants::text[], :plan_types::text[], :plan_versions::text[])
    as r (plan, tenant_id, type, version)
  join tenant t on t.id = r.tenant_id
  left join tenant_last_change v on v.tenant_id = r.tenant_id
  where t.status <> 'deleted'
),
target as materialized (
  select distinct on (p.plan, e.id)
         p.plan, e.id as endpoint_id, e.tenant_id, e.bucket, e.delivery_tail, e.ordering = 'strict' as is_strict
  from unnest(:pattern_plans::integer[], :pattern_tenants::text[], :patterns::text[], :pattern_versions::text[])
    as p (plan, tenant_id, pattern, version)
  join subscription s on s.tenant_id = p.tenant_id and s.pattern = p.pattern
  join endpoint e on e.id = s.endpoint_id
  where s.enabled
    and (s.versions is null or p.version = any (s.versions))
    and e.status in ('active', 'paused')
  order by p.plan, e.id
),
wide as materialized (
  select t.plan, count(*) as deliveries
  from target t
  join plan r on r.plan = t.plan
  where r.is_wide
  group by t.plan
),
new_event as (
  insert into event (id, tenant_id, public_id, type, version, subject, traceparent, body, created_at)
  select i.id, r.tenant_id, i.public_id, r.type, r.version, i.subject, i.traceparent, i.body, i.created_at
  from unnest(:event_ids::uuid[], :event_plans::integer[], :data_bytes::integer[], :public_ids::text[],
              :subjects::text[], :traceparents::text[], :bodies::text[], :shown_at::timestamptz[])
    as i (id, plan, data_bytes, public_id, subject, traceparent, body, created_at)
  join plan r on r.plan = i.plan
  where i.data_bytes <= r.data_bytes_max
),
item as materialized (
  select i.id, i.plan, i.place,
         r.plan is null as is_unknown,
         r.plan is not null and i.data_bytes > r.data_bytes_max as is_too_large,
         r.is_wide, r.publish_rate_per_second, r.revision, r.data_bytes_max
  -- The series is there for the planner: it expects 1,000 rows of it but 10 of unnest, and with 10 it would
  -- join the CTEs below by nested loops.
  from rows from (unnest(:event_ids::uuid[]), unnest(:event_plans::integer[]), unnest(:data_bytes::integer[]),
                  generate_series(1, cardinality(:event_ids::uuid[])))
    as i (id, plan, data_bytes, place)
  left join plan r on r.plan = i.plan
),
new_task as (
  insert into fanout_task (event_id, tenant_id, type, version, created_at)
  select i.id, r.tenant_id, r.type, r.version, :created_at::timestamptz
  from item i
  join plan r on r.plan = i.plan
  where i.is_wide
    and not i.is_too_large
),
matched as materialized (
  select i.id as event_id, i.place, t.tenant_id, t.endpoint_id, t.bucket, t.is_strict,
         (left(replace(i.id::text, '-', ''), 20) || t.delivery_tail)::uuid as id
  from item i
  join target t on t.plan = i.plan
  where not i.is_wide
    and not i.is_too_large
),
{{queue_matched}}
select i.id as event_id, {{result}} as result, w.deliveries as wide_deliveries, i.publish_rate_per_second,
       q.id as delivery_id, q.endpoint_id, q.bucket, q.position, i.revision, i.data_bytes_max
from item i
left join queued q on q.event_id = i.id
left join wide w on w.plan = i.plan;

-- name: publish_known
-- As publish, for events whose fan-out plan the node remembers from an earlier one: nothing is looked up but whether the
-- tenants are still the same, in the snapshot that writes. If one is not, nothing is written.
--   :tenants             each once, and the revision that is remembered of each
--   :event_ids in order, with tenant, type, …, created_at as shown
--   :queue_buckets, …    the queue rows, sorted
--   :buckets             each once
-- Returns whether it was written. No strict endpoints, no wide tenants.
-- Index: tenant_last_change_pkey.
-- large
-- not null: all
with known as materialized (
  select count(*) = cardinality(:tenants::text[]) as is_current
  from unnest(:tenants::text[], :revisions::bigint[]) as k (tenant_id, revision)
  join tenant_last_change v on v.tenant_id = k.tenant_id and v.version = k.revision
),
new_event as (
  insert into event (id, tenant_id, type, version, public_id, subject, traceparent, body, created_at)
  select *
  from unnest(:event_ids::uuid[], :event_tenants::text[], :types::text[], :versions::text[], :public_ids::text[],
              :subjects::text[], :traceparents::text[], :bodies::text[], :shown_at::timestamptz[])
  where (select is_current from known)
),
queued as (
  insert into queue (bucket, id, event_id, endpoint_id, tenant_id, due_at, created_at)
  select q.bucket, q.id, q.event_id, q.endpoint_id, q.tenant_id, :created_at::timestamptz, :created_at::timestamptz
  from unnest(:queue_buckets::integer[], :queue_ids::uuid[], :queue_events::uuid[], :queue_endpoints::uuid[],
              :queue_tenants::text[])
         as q (bucket, id, event_id, endpoint_id, tenant_id)
  where (select is_current from known)
),
logged as (
  insert into publish_log (node_id, first_id, last_id, buckets)
  select :node::uuid, :first_id::uuid, :last_id::uuid, :buckets::integer[]
  where (select is_current from known)
    and cardinality(:buckets::integer[]) > 0
)
select is_current
from known;
