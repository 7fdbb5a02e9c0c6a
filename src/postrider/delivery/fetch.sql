-- How rows of the queue get into memory. All statements run on the shard's own connection, in order with its
-- settles, so that a fetch never returns a row whose settle was sent before it.

-- name: lanes_of_bucket
-- The endpoints that have rows in one bucket: a skip scan over queue_lane, one index descent per lane.
-- $1 bucket, $2 endpoint after which to go on, $3 how many at most
with recursive lane as (
  (
    select endpoint_id
    from queue
    where bucket = $1::int
      and endpoint_id > $2::uuid
    order by endpoint_id
    limit 1
  )
  union all
  select next.endpoint_id
  from lane
  cross join lateral (
    select endpoint_id
    from queue
    where bucket = $1::int
      and endpoint_id > lane.endpoint_id
    order by endpoint_id
    limit 1
  ) as next
)
select endpoint_id
from lane
limit $3::int

-- name: rows_of_lanes
-- The next rows of many lanes, each from its own cursor on. Index queue_lane.
-- $1 buckets, $2 endpoints, $3 retry, $4 to $6 cursors (position, due_at, id), $7 how many of each
select lane.ordinality,
       q.id,
       q.event_id,
       q.position,
       q.due_at,
       q.attempts,
       q.created_at,
       q.replay_id
from unnest($1::int[], $2::uuid[], $3::boolean[], $4::bigint[], $5::timestamptz[], $6::uuid[], $7::int[])
       with ordinality
       as lane (bucket, endpoint_id, retry, position, due_at, id, wanted, ordinality)
cross join lateral (
  select *
  from queue
  where queue.bucket = lane.bucket
    and queue.endpoint_id = lane.endpoint_id
    and queue.retry = lane.retry
    and (queue.position, queue.due_at, queue.id) >= (lane.position, lane.due_at, lane.id)
  order by queue.position, queue.due_at, queue.id
  limit lane.wanted
) as q
order by lane.ordinality, q.position, q.due_at, q.id

-- name: rows_of_range
-- What a publish batch of another node left in our buckets: a page of each. Primary key (bucket, id), one range per
-- bucket.
-- $1 buckets, $2 the delivery id from which to read in each, $3 the last one, $4 how many of each at most
select q.bucket,
       q.endpoint_id,
       q.id,
       q.event_id,
       q.position,
       q.due_at,
       q.attempts,
       q.created_at,
       q.replay_id,
       q.retry
from unnest($1::int[], $2::uuid[]) as part (bucket, first)
cross join lateral (
  select *
  from queue
  where queue.bucket = part.bucket
    and queue.id >= part.first
    and queue.id <= $3::uuid
  order by queue.bucket, queue.id
  limit $4::int
) as q
order by q.bucket, q.position, q.due_at, q.id

-- name: bodies
-- What is sent. The bounds prune partitions; without them every one of them is probed. Primary key, one descent
-- per id: as `id = any ($1)` the planner reads a young partition from end to end, and goes on to do so while it
-- grows. `offset 0` keeps it from making a hash join of it.
-- Those that are too much for one answer have none; the first ones asked for come first.
-- $1 event ids, $2 and $3 the smallest and the largest of them, $4 how many bytes; a body that begins below is sent
select id,
       public_id,
       case when bytes_before < $4::bigint then body end as body,
       traceparent
from (
  select found.*,
         coalesce(sum(octet_length(found.body)) over (
           order by wanted.place rows between unbounded preceding and 1 preceding), 0) as bytes_before
  from unnest($1::uuid[]) with ordinality as wanted (id, place)
  cross join lateral (
    select id, public_id, body, traceparent
    from event_day
    where event_day.id = wanted.id
      and event_day.id >= $2::uuid
      and event_day.id <= $3::uuid
      and event_day.erased_at is null
    offset 0
  ) as found
) as measured

-- name: kept_bodies
-- For events that `bodies` did not find: those whose day was dropped and that were kept, and with `is_retiring` those whose
-- day is detached at this moment, so that they may be about to be kept. The catalogue is read as a table, in the same
-- snapshot: when the day's table is gone, what was kept of it is visible. Primary key.
-- $1 event ids, $2 how many bytes, as in bodies
select id,
       public_id,
       case when bytes_before < $2::bigint then body end as body,
       traceparent,
       is_retiring
from (
  select wanted.id, kept.public_id, kept.body, kept.traceparent, kept.id is null as is_retiring,
         coalesce(sum(octet_length(kept.body)) over (
           order by wanted.place rows between unbounded preceding and 1 preceding), 0) as bytes_before
  from unnest($1::uuid[]) with ordinality as wanted (id, place)
  left join lateral (
    select k.id, k.public_id, k.body, k.traceparent
    from event_kept k
    where k.id = wanted.id
      and k.erased_at is null
    offset 0
  ) as kept on true
  where kept.id is not null
     or exists (
       select
       from pg_class c
       left join pg_inherits i on i.inhrelid = c.oid
       where c.relnamespace = 'postrider'::regnamespace
         and c.relname = 'event_' || to_char(id_time(wanted.id) at time zone 'UTC', 'YYYYMMDD')
         and (i.inhrelid is null or i.inhdetachpending)
     )
) as measured
