-- Reads rows of the queue into memory. All statements run on the shard's own connection, in order with its
-- settles, so that a fetch never returns a row whose settle was sent before it.

-- part: queue_row
q.id,
       q.event_id,
       q.position,
       q.due_at,
       q.attempts,
       q.probes,
       q.created_at,
       q.replay_id

-- name: lanes_of_bucket
-- The endpoints that have rows in one bucket: a skip scan over queue_lane, one index descent per lane.
-- not null: all
with recursive lane as (
  (
    select endpoint_id
    from queue
    where bucket = :bucket::int
      and endpoint_id > :after::uuid
    order by endpoint_id
    limit 1
  )
  union all
  select next.endpoint_id
  from lane
  cross join lateral (
    select endpoint_id
    from queue
    where bucket = :bucket
      and endpoint_id > lane.endpoint_id
    order by endpoint_id
    limit 1
  ) as next
)
select endpoint_id
from lane
limit :lanes_max::int

-- name: rows_of_lanes
-- The next rows of many lanes, each from its own cursor (position, due_at, id) on. `part` is the place of the lane in
-- the arrays, from 1. Index queue_lane.
-- not null: all but replay_id
select lane.part,
       {{queue_row}}
from unnest(:buckets::int[], :endpoints::uuid[], :are_retries::boolean[], :positions::bigint[], :due_at::timestamptz[],
            :ids::uuid[], :rows_max::int[])
       with ordinality
       as lane (bucket, endpoint_id, retry, position, due_at, id, rows_max, part)
cross join lateral (
  select *
  from queue
  where queue.bucket = lane.bucket
    and queue.endpoint_id = lane.endpoint_id
    and queue.retry = lane.retry
    and (queue.position, queue.due_at, queue.id) >= (lane.position, lane.due_at, lane.id)
  order by queue.position, queue.due_at, queue.id
  limit lane.rows_max
) as q
order by lane.part, q.position, q.due_at, q.id

-- name: old_retries
-- A page of a lane's retries, from after a key on: of its rows those that were created up to a time, and the last one if
-- the page is full (`place` = rows_max). Index queue_lane.
-- not null: all but replay_id
select q.place,
       {{queue_row}}
from (
  select queue.*,
         (row_number() over (order by queue.position, queue.due_at, queue.id))::int as place
  from queue
  where queue.bucket = :bucket::int
    and queue.endpoint_id = :endpoint::uuid
    and queue.retry
    and (queue.position, queue.due_at, queue.id) > (:position::bigint, :due_at::timestamptz, :id::uuid)
  order by queue.position, queue.due_at, queue.id
  limit :rows_max::int
) as q
where q.created_at <= :created_up_to::timestamptz
   or q.place = :rows_max
order by q.place

-- name: rows_of_range
-- What a publish batch of another node left in our buckets: a page of each, from its own delivery ID on. Primary key
-- (bucket, id), one range per bucket.
-- not null: all but replay_id
select q.bucket,
       q.endpoint_id,
       q.retry,
       {{queue_row}}
from unnest(:buckets::int[], :first_ids::uuid[]) as part (bucket, first)
cross join lateral (
  select *
  from queue
  where queue.bucket = part.bucket
    and queue.id >= part.first
    and queue.id <= :last::uuid
  order by queue.bucket, queue.id
  limit :rows_max::int
) as q
order by q.bucket, q.position, q.due_at, q.id

-- part: bytes_before
coalesce(sum(octet_length(found.body)) over (
           order by wanted.place rows between unbounded preceding and 1 preceding), 0) as bytes_before

-- name: bodies
-- The bodies of events. The bounds prune partitions; without them every one of them is probed. Primary key, one descent
-- per id: with `id = any (:ids)` the planner reads a young partition from end to end, and keeps doing so while it
-- grows. `offset 0` prevents a hash join.
-- The ids are in order of urgency. A body that starts after `bytes_max` bytes of others is null: it does not fit into
-- this result.
-- not null: id
-- row: body
select id,
       public_id,
       case when bytes_before < :bytes_max::bigint then body end as body,
       traceparent,
       false as is_retiring
from (
  select found.*,
         {{bytes_before}}
  from unnest(:ids::uuid[]) with ordinality as wanted (id, place)
  cross join lateral (
    select id, public_id, body, traceparent
    from event_day
    where event_day.id = wanted.id
      and event_day.id >= :first::uuid
      and event_day.id <= :last::uuid
      and event_day.erased_at is null
    offset 0
  ) as found
) as measured

-- name: kept_bodies
-- For events that `bodies` did not find: those whose day was dropped and that were kept, and with `is_retiring` those
-- whose day is being detached, so that they may be about to be kept. The catalogue is read as a table, in the same
-- snapshot: when the day's table is gone, its kept events are visible. Primary key. Parameters as in `bodies`.
-- not null: id
-- row: body
select id,
       public_id,
       case when bytes_before < :bytes_max::bigint then body end as body,
       traceparent,
       is_retiring
from (
  select wanted.id, found.public_id, found.body, found.traceparent, found.id is null as is_retiring,
         {{bytes_before}}
  from unnest(:ids::uuid[]) with ordinality as wanted (id, place)
  left join lateral (
    select k.id, k.public_id, k.body, k.traceparent
    from event_kept k
    where k.id = wanted.id
      and k.erased_at is null
    offset 0
  ) as found on true
  where found.id is not null
     or exists (
       select
       from pg_class c
       left join pg_inherits i on i.inhrelid = c.oid
       where c.relnamespace = 'postrider'::regnamespace
         and c.relname = 'event_' || to_char(id_time(wanted.id) at time zone 'UTC', 'YYYYMMDD')
         and (i.inhrelid is null or i.inhdetachpending)
     )
) as measured
