-- Running range replays. One runs per tenant, on one node, which holds it by a lease that every step renews.

-- name: take_replay
-- The oldest replay that is next in its tenant and has no runner: the running one, otherwise the first queued one.
-- (Requests may commit in another order than that of their IDs, so the running one need not be the first.) `held` are the
-- replays that this node runs already. Index replay_unfinished, which is small. Locks the row that it takes, and skips
-- rows that are locked.
-- not null: id, tenant_id, scope, since, until, rate_per_second, is_counted
with free as (
  select r.id
  from replay r
  where r.status in ('queued', 'running')
    and (r.runner is null or r.lease_until < now() or r.runner = :node::uuid)
    and r.id <> all (:held::uuid[])
    and not exists (select
                    from replay o
                    where o.tenant_id = r.tenant_id
                      and o.status in ('queued', 'running')
                      and r.status = 'queued'
                      and (o.status = 'running' or o.id < r.id))
  order by r.id
  limit 1
  for update skip locked
)
update replay r
set runner = :node,
    lease_until = now() + make_interval(secs => :lease_seconds::integer),
    status = 'running',
    started_at = coalesce(r.started_at, now())
from free
where r.id = free.id
returning r.id, r.tenant_id, r.scope, r.endpoint_id, r.event_types, r.causes, r.delivery_ids, r.since, r.until,
          r.rate_per_second, r.is_counted

-- name: hold_replay
-- No row: it was canceled, or another node has taken it over. Locks the row until the end of the step, so that the step
-- continues from these values.
-- not null: is_counted
select is_counted, after_id, after_endpoint
from replay
where id = :replay::uuid
  and runner = :node::uuid
  and status = 'running'
for no key update

-- part: strict_positions
-- Positions of the new deliveries (`made`) of strict endpoints: as many as there are of an endpoint are taken from its
-- counter at once, in the order of the endpoints, so that two transactions cannot deadlock. Position of a delivery:
-- counter.position - ordered.size + ordered.rank.
ordered as (
  select m.place, m.endpoint_id,
         row_number() over (partition by m.endpoint_id order by m.place) as rank,
         count(*) over (partition by m.endpoint_id) as size
  from made m
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
)

-- name: queue_replays
-- Creates the deliveries of one step, logs them in the publish log, and resolves the dead letters that they replay
-- (`origins`, null elements for others; `origin_min` and `origin_max` limit the partitions). Skips dead letters that were
-- resolved and events that were erased since the search. There is no handoff in memory: the owners of the buckets fetch
-- the rows. Returns how many were queued.
-- Locks: events against erasure, dead letters, and the positions of strict endpoints in order, until commit.
-- not null: all
with item as materialized (
  select i.place, i.event_id, i.endpoint_id, i.origin_id, e.bucket, e.ordering = 'strict' as is_strict
  from unnest(:events::uuid[], :endpoints::uuid[], :origins::uuid[]) with ordinality as i (event_id, endpoint_id, origin_id, place)
  join endpoint e on e.id = i.endpoint_id
  cross join lateral (
    select v.id
    from event v
    where v.id = i.event_id
      and v.erased_at is null
    offset 0
    for share
  ) as v
),
resolved as (
  update dead_letter d
  set resolved_at = now(),
      resolution = 'replayed'
  from item i
  where d.delivery_id = i.origin_id
    and d.delivery_id >= :origin_min::uuid
    and d.delivery_id <= :origin_max::uuid
    and d.bucket = i.bucket
    and d.resolved_at is null
  returning d.delivery_id
),
made as materialized (
  select i.place, new_id() as id, i.event_id, i.endpoint_id, i.origin_id, i.bucket, i.is_strict
  from (select * from item order by place) as i
  where i.origin_id is null
     or exists (select from resolved r where r.delivery_id = i.origin_id)
),
{{strict_positions}},
queued as (
  insert into queue (bucket, id, event_id, endpoint_id, tenant_id, position, due_at, created_at, replay_id)
  select m.bucket, m.id, m.event_id, m.endpoint_id, :tenant::text, coalesce(c.position - o.size + o.rank, 0), now(),
         now(), :replay::uuid
  from made m
  left join ordered o on o.place = m.place
  left join counter c on c.endpoint_id = o.endpoint_id
  order by m.bucket, m.id
),
known as (
  insert into replayed (event_id, endpoint_id, delivery_id, origin_id, replay_id)
  select m.event_id, m.endpoint_id, m.id, m.origin_id, :replay
  from made m
),
logged as (
  insert into publish_log (node_id, first_id, last_id, buckets)
  select '00000000-0000-0000-0000-000000000000',
         (select m.id from made m order by m.id limit 1),
         (select m.id from made m order by m.id desc limit 1),
         array_agg(distinct m.bucket)
  from made m
  having count(*) > 0
)
select count(*) as queued
from made

-- name: move_replay
-- The end of a step. Dead letters may be resolved by others between counting and queueing, so a replay that is complete
-- matched the deliveries that it queued. The row is locked already.
update replay
set lease_until = now() + make_interval(secs => :lease_seconds::integer),
    is_counted = :is_counted::boolean,
    matched = case when :is_complete::boolean then queued + :more_queued::bigint
                   else matched + :more_matched::bigint end,
    queued = queued + :more_queued,
    after_id = :after_id?::uuid,
    after_endpoint = :after_endpoint?::uuid,
    status = case when :is_complete then 'completed' else status end,
    finished_at = case when :is_complete then now() end,
    runner = case when :is_complete then null else runner end
where id = :replay::uuid

-- name: renew_replays
-- Between two steps of a slow replay.
update replay
set lease_until = now() + make_interval(secs => :lease_seconds::integer)
where id = any (:replays::uuid[])
  and runner = :node::uuid

-- name: release_replays
-- At a clean stop, so that other nodes take them at once.
update replay
set runner = null,
    lease_until = null
where id = any (:replays::uuid[])
  and runner = :node::uuid
