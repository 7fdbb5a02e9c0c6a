-- Fan-out of events for tenants with very many endpoints, in chunks behind a cursor.

-- name: lock_task
-- The next tenant's oldest task, unless another node works on it: tenants take turns, chunk by chunk, and the events of
-- each stay in order. $1 behind this tenant. Index: fanout_task_by_tenant. Locks: the task, until the chunk is
-- committed.
select f.event_id, f.tenant_id, f.type, f.version, f.created_at, f.after_endpoint
from fanout_task f
where f.tenant_id > $1::text
  and f.event_id = (select o.event_id
                    from fanout_task o
                    where o.tenant_id = f.tenant_id
                    order by o.event_id
                    limit 1)
order by f.tenant_id, f.event_id
limit 1
for update skip locked;

-- name: event_content
-- $1 and $2 between which the ids of the event's rows lie, $3 the event's own: one row, or one per version in order of
-- preference. Index: the key of its partition.
select e.id, e.version, e.public_id, e.body, e.traceparent
from event e
where e.id >= $1::uuid
  and e.id <= $2::uuid
order by e.id < $3::uuid, e.id;

-- name: fan_out_chunk
-- The queue rows of the next endpoints of a locked task, and its cursor, or its end.
--   $1 event, $2 tenant, $3 patterns that match its type, $4 its versions in order of preference, $5 created_at,
--   $6 cursor, $7 endpoints per chunk, $8 node, $9 and $10 ids of the deliveries lie in this range, $11 the row of each
--   version
-- Returns at least one row: whether the task is done, and the queue row, if any.
-- Indexes: subscription_pkey, endpoint_pkey. Locks: the position rows of strict endpoints, in order.
with chunk as materialized (
  select distinct s.endpoint_id
  from unnest($3::text[]) as p (pattern)
  cross join lateral (
    select s.endpoint_id
    from subscription s
    where s.tenant_id = $2::text
      and s.pattern = p.pattern
      and s.endpoint_id > $6::uuid
      and s.enabled
      and (s.versions is null or s.versions && $4::text[])
    order by s.endpoint_id
    limit $7::integer
  ) s
  order by s.endpoint_id
  limit $7::integer
),
target as materialized (
  select e.id as endpoint_id, e.bucket, e.ordering = 'strict' as is_strict,
         (left(replace($1::uuid::text, '-', ''), 20) || e.delivery_tail)::uuid as id,
         case
           when cardinality($11::uuid[]) = 1 then $1::uuid
           else (select v.id
                 from subscription s
                 join unnest($11::uuid[], $4::text[]) with ordinality as v (id, name, rank)
                   on case when s.versions is null then v.rank = 1 else v.name = any (s.versions) end
                 where s.tenant_id = $2::text
                   and s.pattern = any ($3::text[])
                   and s.endpoint_id = e.id
                   and s.enabled
                 order by s.versions is null, v.rank
                 limit 1)
         end as event_id
  from chunk c
  join endpoint e on e.id = c.endpoint_id
  where e.status in ('active', 'paused')
),
counter as (
  insert into endpoint_position as p (endpoint_id, position)
  select t.endpoint_id, 1
  from target t
  where t.is_strict
  order by t.endpoint_id
  on conflict (endpoint_id) do update
    set position = p.position + 1
  returning p.endpoint_id, p.position
),
queued_strict as (
  insert into queue (bucket, id, event_id, endpoint_id, tenant_id, position, due_at, created_at)
  select t.bucket, t.id, t.event_id, t.endpoint_id, $2::text, c.position, $5::timestamptz, $5::timestamptz
  from target t
  join counter c on c.endpoint_id = t.endpoint_id
  order by t.bucket, t.id
  returning id, endpoint_id, bucket, position, event_id
),
queued_free as (
  insert into queue (bucket, id, event_id, endpoint_id, tenant_id, due_at, created_at)
  select t.bucket, t.id, t.event_id, t.endpoint_id, $2::text, $5::timestamptz, $5::timestamptz
  from target t
  where not t.is_strict
  order by t.bucket, t.id
  returning id, endpoint_id, bucket, position, event_id
),
queued as materialized (
  select id, endpoint_id, bucket, position, event_id from queued_free
  union all
  select id, endpoint_id, bucket, position, event_id from queued_strict
),
logged as (
  insert into publish_log (node_id, first_id, last_id, buckets)
  select $8::uuid, $9::uuid, $10::uuid, array_agg(distinct q.bucket)
  from queued q
  having count(*) > 0
),
progress as materialized (
  select count(*) < $7::integer as is_done,
         (select c.endpoint_id from chunk c order by c.endpoint_id desc limit 1) as last_endpoint
  from chunk
),
moved as (
  update fanout_task f
  set after_endpoint = p.last_endpoint
  from progress p
  where f.event_id = $1::uuid
    and not p.is_done
),
ended as (
  delete from fanout_task f
  using progress p
  where f.event_id = $1::uuid
    and p.is_done
)
select p.is_done, q.id, q.endpoint_id, q.bucket, q.position, q.event_id
from progress p
left join queued q on true;
