-- Publishing events in several versions. A version is an event row of its own whose id begins with the same ten bytes,
-- so that an event's deliveries, in whatever version, have ids of one range and each endpoint can have only one.

-- name: publish_versions
-- As publish, for events in several versions: each endpoint gets the one that its subscription names. A subscription
-- that names some goes before one that names none, which gets the first.
--   $1 node that hands the deliveries over in memory; nil: nobody does, every owner must fetch them
--   $2, $3 ids of the deliveries lie in this range
--   $4 event ids in order, $5 tenant, $6 type, $7 bytes of the largest data, $8 publisher's id, $9 subject,
--   $10 traceparent, $11 created_at as shown
--   $12 event, $13 rank from 1, $14 id of its row (of the first: the event's), $15 name, $16 body: each version
--   $17 event, $18 pattern: each pattern that matches the type of each event
--   $19 the time now, $20 bytes of data when the tenant sets no limit, $21 a tenant with more endpoints is fanned out
--   in chunks
-- Returns at least one row per event: its ID, its result (queued, wide, unknown_tenant, too_large), how many
-- deliveries a wide one will have, the tenant's publish rate, and the queue row, if any, with the version's row.
-- Indexes: tenant_pkey, subscription_pkey, endpoint_pkey. Locks: the position rows of strict endpoints, in order.
with item as materialized (
  select i.id, i.place, i.tenant_id, i.type, i.public_id, i.subject, i.traceparent, i.created_at,
         t.id is null as is_unknown,
         t.id is not null and i.data_bytes > coalesce(t.payload_bytes_max, $20::integer) as is_too_large,
         t.endpoint_count > $21::integer
           or (t.strict_count > 0 and exists (select from fanout_task f where f.tenant_id = t.id)) as is_wide,
         t.publish_rate_per_second
  from unnest($4::uuid[], $5::text[], $6::text[], $7::integer[], $8::text[], $9::text[], $10::text[],
              $11::timestamptz[]) with ordinality
    as i (id, tenant_id, type, data_bytes, public_id, subject, traceparent, created_at, place)
  left join tenant t on t.id = i.tenant_id and t.status <> 'deleted'
),
version as materialized (
  select v.event_id, v.rank, v.id, v.name, v.body
  from unnest($12::uuid[], $13::integer[], $14::uuid[], $15::text[], $16::text[]) as v (event_id, rank, id, name, body)
),
target as materialized (
  select distinct on (i.id, e.id)
         i.id as event_id, i.place, i.tenant_id, i.is_wide, v.id as version_id, e.id as endpoint_id, e.bucket,
         e.ordering = 'strict' as is_strict,
         (left(replace(i.id::text, '-', ''), 20) || e.delivery_tail)::uuid as id
  from item i
  join unnest($17::uuid[], $18::text[]) as p (event_id, pattern) on p.event_id = i.id
  join subscription s on s.tenant_id = i.tenant_id and s.pattern = p.pattern
  join endpoint e on e.id = s.endpoint_id
  join version v on v.event_id = i.id
                and case when s.versions is null then v.rank = 1 else v.name = any (s.versions) end
  where s.enabled
    and e.status in ('active', 'paused')
    and not i.is_unknown
    and not i.is_too_large
  order by i.id, e.id, s.versions is null, v.rank
),
new_event as (
  insert into event (id, tenant_id, public_id, type, version, subject, traceparent, body, created_at, main_id)
  select v.id, i.tenant_id,
         coalesce(i.public_id, case when v.rank > 1 then 'evt_' || replace(i.id::text, '-', '') end),
         i.type, v.name, i.subject, i.traceparent, v.body, i.created_at, i.id
  from item i
  join version v on v.event_id = i.id
  where not i.is_unknown
    and not i.is_too_large
),
new_task as (
  insert into fanout_task (event_id, tenant_id, type, version, created_at)
  select i.id, i.tenant_id, i.type, v.name, $19::timestamptz
  from item i
  join version v on v.event_id = i.id and v.rank = 1
  where i.is_wide
    and not i.is_too_large
),
matched as materialized (
  select t.*,
         row_number() over (partition by t.endpoint_id order by t.place) as rank,
         count(*) over (partition by t.endpoint_id) as size
  from target t
  where not t.is_wide
),
counter as (
  insert into endpoint_position as p (endpoint_id, position)
  select m.endpoint_id, m.size
  from matched m
  where m.is_strict
    and m.rank = 1
  order by m.endpoint_id
  on conflict (endpoint_id) do update
    set position = p.position + excluded.position
  returning p.endpoint_id, p.position
),
queued as (
  insert into queue (bucket, id, event_id, endpoint_id, tenant_id, position, due_at, created_at)
  select m.bucket, m.id, m.version_id, m.endpoint_id, m.tenant_id, coalesce(c.position - m.size + m.rank, 0),
         $19::timestamptz, $19::timestamptz
  from matched m
  left join counter c on c.endpoint_id = m.endpoint_id
  order by m.bucket, m.id
  returning id, event_id, endpoint_id, bucket, position
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
       case when i.is_wide then (select count(*) from target t where t.event_id = i.id) end as wide_deliveries,
       i.publish_rate_per_second, q.id, q.endpoint_id, q.bucket, q.position, q.event_id
from item i
left join matched m on m.event_id = i.id
left join queued q on q.id = m.id and q.bucket = m.bucket;
