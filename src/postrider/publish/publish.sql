-- Publishing: events, their queue rows and the line in the publish log, in one statement and one snapshot.

-- name: publish
-- Writes a batch of events and one queue row per event and matching endpoint.
--
-- Events that share tenant, type and version share a route; the endpoints of a route are looked up once.
--   $1 node that hands the deliveries over in memory; nil: nobody does, every owner must fetch them
--   $2, $3 ids of the deliveries lie in this range
--   $4 route numbers, $5 tenant, $6 type, $7 version of each
--   $8 route number, $9 tenant, $10 pattern, $11 version: each pattern that matches the type of each route
--   $12 event ids in order, $13 route of each, $14 bytes of its data, $15 publisher's id, $16 subject,
--   $17 traceparent, $18 body, $19 created_at as shown, $20 the time now
--   $21 bytes of data when the tenant sets no limit, $22 a tenant with more endpoints is fanned out in chunks
--
-- Returns at least one row per event: its ID, its result (queued, wide, unknown_tenant, too_large),
-- how many deliveries a wide one will have, the tenant's publish rate, the queue row, if any, and, when the route
-- may be remembered for publish_known, the tenant's revision and its limit of bytes.
-- Indexes: tenant_pkey, tenant_revision_pkey, subscription_pkey, endpoint_pkey. Locks: the position rows of strict endpoints, in
-- order, until commit; so positions are in commit order.
with route as materialized (
  select r.route, r.tenant_id, r.type, r.version,
         t.publish_rate_per_second,
         coalesce(t.payload_bytes_max, $21::integer) as data_bytes_max,
         t.endpoint_count > $22::integer
           -- While an older event of an ordered tenant is still being fanned out, the next one queues behind it.
           or (t.strict_count > 0 and exists (select from fanout_task f where f.tenant_id = t.id)) as is_wide,
         case when t.strict_count = 0 then v.revision end as revision
  from unnest($4::integer[], $5::text[], $6::text[], $7::text[]) as r (route, tenant_id, type, version)
  join tenant t on t.id = r.tenant_id
  left join tenant_revision v on v.tenant_id = r.tenant_id
  where t.status <> 'deleted'
),
target as materialized (
  select distinct on (p.route, e.id)
         p.route, e.id as endpoint_id, e.tenant_id, e.bucket, e.delivery_tail, e.ordering = 'strict' as is_strict
  from unnest($8::integer[], $9::text[], $10::text[], $11::text[]) as p (route, tenant_id, pattern, version)
  join subscription s on s.tenant_id = p.tenant_id and s.pattern = p.pattern
  join endpoint e on e.id = s.endpoint_id
  where s.enabled
    and (s.versions is null or p.version = any (s.versions))
    and e.status in ('active', 'paused')
  order by p.route, e.id
),
wide as materialized (
  select t.route, count(*) as deliveries
  from target t
  join route r on r.route = t.route
  where r.is_wide
  group by t.route
),
new_event as (
  insert into event (id, tenant_id, public_id, type, version, subject, traceparent, body, created_at)
  select i.id, r.tenant_id, i.public_id, r.type, r.version, i.subject, i.traceparent, i.body, i.created_at
  from unnest($12::uuid[], $13::integer[], $14::integer[], $15::text[], $16::text[], $17::text[], $18::text[],
              $19::timestamptz[])
    as i (id, route, data_bytes, public_id, subject, traceparent, body, created_at)
  join route r on r.route = i.route
  where i.data_bytes <= r.data_bytes_max
),
item as materialized (
  select i.id, i.route, i.place,
         r.route is null as is_unknown,
         r.route is not null and i.data_bytes > r.data_bytes_max as is_too_large,
         r.is_wide, r.publish_rate_per_second, r.revision, r.data_bytes_max
  -- The series is there for the planner: it expects 1,000 rows of it but 10 of unnest, and with 10 it would
  -- join the CTEs below by nested loops.
  from rows from (unnest($12::uuid[]), unnest($13::integer[]), unnest($14::integer[]),
                  generate_series(1, cardinality($12::uuid[])))
    as i (id, route, data_bytes, place)
  left join route r on r.route = i.route
),
new_task as (
  insert into fanout_task (event_id, tenant_id, type, version, created_at)
  select i.id, r.tenant_id, r.type, r.version, $20::timestamptz
  from item i
  join route r on r.route = i.route
  where i.is_wide
    and not i.is_too_large
),
matched as materialized (
  select i.id as event_id, i.place, t.tenant_id, t.endpoint_id, t.bucket, t.is_strict,
         (left(replace(i.id::text, '-', ''), 20) || t.delivery_tail)::uuid as id
  from item i
  join target t on t.route = i.route
  where not i.is_wide
    and not i.is_too_large
),
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
         $20::timestamptz, $20::timestamptz
  from ordered o
  join counter c on c.endpoint_id = o.endpoint_id
  order by o.bucket, o.id
  returning event_id, id, endpoint_id, bucket, position
),
queued_free as (
  insert into queue (bucket, id, event_id, endpoint_id, tenant_id, due_at, created_at)
  select m.bucket, m.id, m.event_id, m.endpoint_id, m.tenant_id, $20::timestamptz, $20::timestamptz
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
  select $1::uuid, $2::uuid, $3::uuid, array_agg(distinct q.bucket)
  from queued q
  having count(*) > 0
)
select i.id,
       case
         when i.is_unknown then 'unknown_tenant'
         when i.is_too_large then 'too_large'
         when i.is_wide then 'wide'
         else 'queued'
       end as fate,
       w.deliveries as wide_deliveries,
       i.publish_rate_per_second, q.id, q.endpoint_id, q.bucket, q.position, i.revision, i.data_bytes_max
from item i
left join queued q on q.event_id = i.id
left join wide w on w.route = i.route;

-- name: publish_known
-- As publish, for events whose endpoints the node remembers from an earlier one: nothing is looked up but whether
-- the tenants are still the same, in the snapshot that writes. If one is not, nothing is written.
--   $1 node that hands the deliveries over in memory; nil: nobody does, every owner must fetch them
--   $2, $3 ids of the deliveries lie in this range
--   $4 tenants, each once, $5 the revision that is remembered of each
--   $6 event ids in order, $7 tenant, $8 type, $9 version, $10 publisher's id, $11 subject, $12 traceparent,
--   $13 body, $14 created_at as shown
--   $15 buckets, $16 delivery ids, $17 event ids, $18 endpoint ids, $19 tenants: the queue rows, sorted
--   $20 the time now, $21 the buckets, each once
-- Returns whether it was written. No strict endpoints, no wide tenants.
-- Index: tenant_revision_pkey.
with known as materialized (
  select count(*) = cardinality($4::text[]) as is_current
  from unnest($4::text[], $5::bigint[]) as k (tenant_id, revision)
  join tenant_revision v on v.tenant_id = k.tenant_id and v.revision = k.revision
),
new_event as (
  insert into event (id, tenant_id, type, version, public_id, subject, traceparent, body, created_at)
  select *
  from unnest($6::uuid[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[],
              $14::timestamptz[])
  where (select is_current from known)
),
queued as (
  insert into queue (bucket, id, event_id, endpoint_id, tenant_id, due_at, created_at)
  select q.bucket, q.id, q.event_id, q.endpoint_id, q.tenant_id, $20::timestamptz, $20::timestamptz
  from unnest($15::integer[], $16::uuid[], $17::uuid[], $18::uuid[], $19::text[])
         as q (bucket, id, event_id, endpoint_id, tenant_id)
  where (select is_current from known)
),
logged as (
  insert into publish_log (node_id, first_id, last_id, buckets)
  select $1::uuid, $2::uuid, $3::uuid, $21::integer[]
  where (select is_current from known)
    and cardinality($21::integer[]) > 0
)
select is_current
from known;
