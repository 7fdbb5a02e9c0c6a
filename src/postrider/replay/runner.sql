-- Working on replays of ranges. One runs per tenant, on one node, which holds it by a lease that every step renews.

-- name: take_replay
-- The oldest replay that is its tenant's turn and nobody's: the one that runs, or else the first that waits. (Requests
-- may commit in another order than that of their ids: the one that runs need not be the first.) $1 node, $2 lease in
-- seconds, $3 replays that this node has already. Index replay_unfinished, which is small. Locks the row it takes; one that somebody changes is left.
with free as (
  select r.id
  from replay r
  where r.status in ('queued', 'running')
    and (r.runner is null or r.lease_until < now() or r.runner = $1::uuid)
    and r.id <> all ($3::uuid[])
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
set runner = $1::uuid,
    lease_until = now() + make_interval(secs => $2::integer),
    status = 'running',
    started_at = coalesce(r.started_at, now())
from free
where r.id = free.id
returning r.id, r.tenant_id, r.scope, r.endpoint_id, r.event_types, r.causes, r.delivery_ids, r.since, r.until,
          r.rate_per_second, r.is_counted, r.after_id, r.after_endpoint

-- name: hold_replay
-- $1 replay, $2 node. Zero rows: canceled, or somebody else's by now. Locks the row to the end of the step, so that what
-- is read of it is what the step goes on from.
select is_counted, after_id, after_endpoint
from replay
where id = $1::uuid
  and runner = $2::uuid
  and status = 'running'
for no key update

-- name: queue_replays
-- The new deliveries of one step, their line in the publish log, and the dead letters that they resolve.
--   $1 replay, $2 tenant, $3 event, $4 endpoint and $5 old delivery of each, $6 and $7 the smallest and the largest old
--   delivery. Left out: dead letters that somebody else resolved, and events that were erased meanwhile
-- Nobody hands them over in memory: their owners fetch them. Returns how many were queued.
-- Locks: events against erasure, dead letters, and the positions of strict endpoints in order, until commit.
with item as materialized (
  select i.place, i.event_id, i.endpoint_id, i.origin_id, e.bucket, e.ordering = 'strict' as is_strict
  from unnest($3::uuid[], $4::uuid[], $5::uuid[]) with ordinality as i (event_id, endpoint_id, origin_id, place)
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
    and d.delivery_id >= $6::uuid
    and d.delivery_id <= $7::uuid
    and d.bucket = i.bucket
    and d.resolved_at is null
  returning d.delivery_id
),
made as materialized (
  select i.place, make_id() as id, i.event_id, i.endpoint_id, i.origin_id, i.bucket, i.is_strict
  from (select * from item order by place) as i
  where i.origin_id is null
     or exists (select from resolved r where r.delivery_id = i.origin_id)
),
ordered as (
  select m.*,
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
),
queued as (
  insert into queue (bucket, id, event_id, endpoint_id, tenant_id, position, due_at, created_at, replay_id)
  select m.bucket, m.id, m.event_id, m.endpoint_id, $2::text, coalesce(c.position - o.size + o.rank, 0), now(), now(),
         $1::uuid
  from made m
  left join ordered o on o.place = m.place
  left join counter c on c.endpoint_id = o.endpoint_id
  order by m.bucket, m.id
),
known as (
  insert into replayed (event_id, endpoint_id, delivery_id, origin_id, replay_id)
  select m.event_id, m.endpoint_id, m.id, m.origin_id, $1::uuid
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
select count(*)
from made

-- name: move_replay
-- The end of a step: $1 replay, $2 lease in seconds, $3 whether it is counted now, $4 how many more matched, $5 how many
-- more were queued, $6 and $7 how far it is, $8 whether it is done. What was counted first may have been resolved by
-- somebody else since; at its end it matched what it queued. The row is locked already.
update replay
set lease_until = now() + make_interval(secs => $2::integer),
    is_counted = $3::boolean,
    matched = case when $8::boolean then queued + $5::bigint else matched + $4::bigint end,
    queued = queued + $5::bigint,
    after_id = $6::uuid,
    after_endpoint = $7::uuid,
    status = case when $8 then 'completed' else status end,
    finished_at = case when $8 then now() end,
    runner = case when $8 then null else runner end
where id = $1::uuid

-- name: renew_replays
-- $1 replays, $2 node, $3 lease in seconds: between two steps of a slow one.
update replay
set lease_until = now() + make_interval(secs => $3::integer)
where id = any ($1::uuid[])
  and runner = $2::uuid

-- name: release_replays
-- A clean stop: $1 replays, $2 node. Others take them at once.
update replay
set runner = null,
    lease_until = null
where id = any ($1::uuid[])
  and runner = $2::uuid
