-- Fan-out of events for tenants with very many endpoints, in chunks, each after the last endpoint of the one before.

-- name: lock_task
-- The next tenant's oldest task, unless another node works on it: tenants take turns, chunk by chunk, and the events of
-- each stay in order. :after_tenant whose turn it was. Index: fanout_task_by_tenant. Locks: the task, until the chunk is
-- committed.
-- not null: all but version, after_endpoint
select f.event_id, f.tenant_id, f.type, f.version, f.created_at, f.after_endpoint
from fanout_task f
where f.tenant_id > :after_tenant::text
  and f.event_id = (select o.event_id
                    from fanout_task o
                    where o.tenant_id = f.tenant_id
                    order by o.event_id
                    limit 1)
order by f.tenant_id, f.event_id
limit 1
for update skip locked;

-- name: event_content
-- The rows of an event, whose IDs lie between :first_id and :last_id: one, or one per version in order of preference,
-- first the :event itself. Index: the key of its partition.
-- not null: id, body
select e.id, e.version, e.public_id, e.body, e.traceparent
from event e
where e.id >= :first_id::uuid
  and e.id <= :last_id::uuid
order by e.id < :event::uuid, e.id;

-- name: fan_out_chunk
-- The queue rows of the next endpoints of a locked task, and its cursor, or its end.
--   :patterns            that match the type of the event
--   :versions            in order of preference, and the row of each
--   :after_endpoint      the last one of the chunk before; nil for the first chunk
-- Returns at least one row: whether the task is done, and the queue row, if any.
-- Indexes: subscription_pkey, endpoint_pkey. Locks: the position rows of strict endpoints, in order.
-- not null: is_done
with chunk as materialized (
  select distinct s.endpoint_id
  from unnest(:patterns::text[]) as p (pattern)
  cross join lateral (
    select s.endpoint_id
    from subscription s
    where s.tenant_id = :tenant::text
      and s.pattern = p.pattern
      and s.endpoint_id > :after_endpoint::uuid
      and s.enabled
      and (s.versions is null or s.versions && :versions::text[])
    order by s.endpoint_id
    limit :endpoints_max::integer
  ) s
  order by s.endpoint_id
  limit :endpoints_max
),
matched as materialized (
  select e.id as endpoint_id, e.bucket, e.ordering = 'strict' as is_strict, :tenant as tenant_id, 1 as place,
         (left(replace(:event::uuid::text, '-', ''), 20) || e.delivery_tail)::uuid as id,
         case
           when cardinality(:version_ids::uuid[]) = 1 then :event
           else (select v.id
                 from subscription s
                 join unnest(:version_ids::uuid[], :versions::text[]) with ordinality as v (id, name, rank)
                   on case when s.versions is null then v.rank = 1 else v.name = any (s.versions) end
                 where s.tenant_id = :tenant
                   and s.pattern = any (:patterns::text[])
                   and s.endpoint_id = e.id
                   and s.enabled
                 order by s.versions is null, v.rank
                 limit 1)
         end as event_id
  from chunk c
  join endpoint e on e.id = c.endpoint_id
  where e.status in ('active', 'paused')
),
{{publish/publish.queue_matched}},
progress as materialized (
  select count(*) < :endpoints_max as is_done,
         (select c.endpoint_id from chunk c order by c.endpoint_id desc limit 1) as last_endpoint
  from chunk
),
moved as (
  update fanout_task f
  set after_endpoint = p.last_endpoint
  from progress p
  where f.event_id = :event
    and not p.is_done
),
ended as (
  delete from fanout_task f
  using progress p
  where f.event_id = :event
    and p.is_done
)
select p.is_done, q.id as delivery_id, q.endpoint_id, q.bucket, q.position, q.event_id
from progress p
left join queued q on true;
