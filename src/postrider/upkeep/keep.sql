-- Rows of a day that something still needs: found, moved to the kept tables before the day is dropped, and deleted when
-- nothing needs them any more. A need never appears out of nothing: a delivery becomes a dead letter, a dead letter or a
-- replay becomes a delivery, each in one transaction. So a statement that looks at all of them at once misses none.

-- name: raise_kept_since
-- $1 seconds that events are kept, $2 attempts. From here on nothing older is replayed, except unresolved dead letters.
update kept_since k
set since = greatest(k.since, f.since),
    below = id_floor(greatest(k.since, f.since))
from (
  values ('events', date_trunc('day', now() - make_interval(secs => $1::bigint), 'UTC')),
         ('attempts', date_trunc('day', now() - make_interval(secs => $2::bigint), 'UTC'))
) as f (name, since)
where k.name = f.name

-- name: buckets_in_use
-- Buckets with deliveries whose ids lie from $1 on and below $2. Index queue_pkey.
select l.bucket
from bucket_lease l
where exists (select from queue q where q.bucket = l.bucket and q.id >= $1::uuid and q.id < $2::uuid)
order by l.bucket

-- name: deliveries_in_bucket
-- Pending deliveries from $1 on and below $2, $3 at most, of bucket $4: their ids and events. Index queue_pkey.
select q.id, q.event_id
from queue q
where q.bucket = $4::integer
  and q.id >= $1::uuid
  and q.id < $2::uuid
order by q.id
limit $3::integer

-- name: needed_events
-- Events from $1 on and below $2 that are needed by something else than an original delivery: a pending replay, a wide
-- fan-out, an unresolved dead letter, or a replay of a range ($4: the table that has the day). $3 at most, in order.
-- Indexes: queue_replayed, the key of fanout_task, dead_letter_unresolved_by_event.
select n.id, n.id
from (
  (select q.event_id as id
   from queue q
   where q.replay_id is not null
     and q.event_id >= $1::uuid
     and q.event_id < $2::uuid
   order by q.event_id
   limit $3::integer)
  union
  (select f.event_id
   from fanout_task f
   where f.event_id >= $1
     and f.event_id < $2
   order by f.event_id
   limit $3)
  union
  (select d.event_id
   from dead_letter d
   where d.resolved_at is null
     and d.event_id >= $1
     and d.event_id < $2
   order by d.event_id
   limit $3)
  union
  select needed_by_replays('event', $4::text::regclass, $1, $2, $3)
) as n
order by n.id
limit $3

-- name: needed_attempts
-- As needed_events, deliveries whose attempts are needed: by an unresolved dead letter or a replay of what is missing.
-- Index dead_letter_unresolved_by_id.
select n.id, n.id
from (
  (select d.delivery_id as id
   from dead_letter d
   where d.resolved_at is null
     and d.delivery_id >= $1::uuid
     and d.delivery_id < $2::uuid
   order by d.delivery_id
   limit $3::integer)
  union
  select needed_by_replays('attempt', $4::text::regclass, $1, $2, $3)
) as n
order by n.id
limit $3

-- name: needed_dead_letters
-- Unresolved ones, as needed_events; $4: the table that has the day. Index dead_letter_unresolved_by_id.
select d.delivery_id, d.delivery_id
from dead_letter d
where d.resolved_at is null
  and d.delivery_id >= $1::uuid
  and d.delivery_id < $2::uuid
  and not d.is_kept
  and $4::text is not null
order by d.delivery_id
limit $3::integer

-- name: move_events
-- $1 events, all rows of each, in the day from $2 on and below $3. A session that waits for one of the rows gets a
-- serialization failure and finds it when it tries again. Locks the rows. The ids are compared as an array: joined, they
-- make the planner read the whole day.
update event e
set is_kept = true
where e.id = any (array(
    select v.id
    from unnest($1::uuid[]) as i (id)
    cross join lateral (
      select d.id
      from event_day d
      where d.id >= first_delivery_id(i.id)
        and d.id <= last_delivery_id(i.id)
        and d.id >= $2::uuid
        and d.id < $3::uuid
      order by d.id
      limit 1000
    ) as v
  ))
  and e.id >= $2::uuid
  and e.id < $3::uuid
  and not e.is_kept

-- name: move_attempts
-- As move_events: $1 deliveries.
update attempt a
set is_kept = true
where a.delivery_id = any ($1::uuid[])
  and a.delivery_id >= $2::uuid
  and a.delivery_id < $3::uuid
  and not a.is_kept

-- name: move_dead_letters
-- As move_attempts. One that was resolved meanwhile stays where it is.
update dead_letter d
set is_kept = true
where d.delivery_id = any ($1::uuid[])
  and d.delivery_id >= $2::uuid
  and d.delivery_id < $3::uuid
  and d.resolved_at is null
  and not d.is_kept

-- name: trim_kept_events
-- The next page of kept events: $1 behind this id, $2 rows. Deletes those that nothing needs, except while their day still
-- has a table, which has yet to be archived. Returns the last id of the page and how many were deleted.
with page as materialized (
  select k.id
  from event_kept k
  where k.id > $1::uuid
  order by k.id
  limit $2::integer
),
edge as materialized (
  select first_delivery_id((select p.id from page p order by p.id limit 1)) as low,
         last_delivery_id((select p.id from page p order by p.id desc limit 1)) as high
),
needed as materialized (
  select first_delivery_id(n.id) as id
  from edge
  cross join lateral (
    select q.event_id as id
    from bucket_lease l
    join queue q on q.bucket = l.bucket and q.id >= edge.low and q.id <= edge.high
    union all
    select q.event_id
    from queue q
    where q.replay_id is not null and q.event_id >= edge.low and q.event_id <= edge.high
    union all
    select f.event_id
    from fanout_task f
    where f.event_id >= edge.low and f.event_id <= edge.high
    union all
    select d.event_id
    from dead_letter d
    where d.resolved_at is null and d.event_id >= edge.low and d.event_id <= edge.high
    union all
    select needed_by_replays('event', 'event_kept', edge.low, edge.high, 2147483647)
  ) as n
),
gone as (
  delete from event_kept k
  using page p
  where k.id = p.id
    and not exists (select from needed n where n.id = first_delivery_id(p.id))
    and to_regclass('postrider.event_' || to_char(id_time(p.id) at time zone 'UTC', 'YYYYMMDD')) is null
  returning k.id
)
select (select p.id from page p order by p.id desc limit 1), (select count(*) from gone)

-- name: trim_kept_attempts
-- As trim_kept_events, of deliveries; $3 seconds that the history of one that has ended is kept from its last attempt on.
with page as materialized (
  select k.delivery_id as id, max(k.started_at) as last_at
  from attempt_kept k
  where k.delivery_id > $1::uuid
  group by k.delivery_id
  order by k.delivery_id
  limit $2::integer
),
edge as materialized (
  select (select p.id from page p order by p.id limit 1) as low,
         (select p.id from page p order by p.id desc limit 1) as high
),
needed as materialized (
  select n.id
  from edge
  cross join lateral (
    select q.id
    from bucket_lease l
    join queue q on q.bucket = l.bucket and q.id >= edge.low and q.id <= edge.high
    union all
    select d.delivery_id
    from dead_letter d
    where d.resolved_at is null and d.delivery_id >= edge.low and d.delivery_id <= edge.high
    union all
    select needed_by_replays('attempt', 'attempt_kept', edge.low, last_delivery_id(edge.high), 2147483647)
  ) as n
),
gone as (
  delete from attempt_kept k
  using page p
  where k.delivery_id = p.id
    and p.last_at < now() - make_interval(secs => $3::bigint)
    and not exists (select from needed n where n.id = p.id)
    and to_regclass('postrider.attempt_' || to_char(id_time(p.id) at time zone 'UTC', 'YYYYMMDD')) is null
  returning k.delivery_id
)
select (select p.id from page p order by p.id desc limit 1), (select count(*) from gone)

-- name: trim_kept_dead_letters
-- As trim_kept_events: those that were resolved $3 seconds ago.
with page as materialized (
  select k.delivery_id as id
  from dead_letter_kept k
  where k.delivery_id > $1::uuid
  order by k.delivery_id
  limit $2::integer
),
gone as (
  delete from dead_letter_kept k
  using page p
  where k.delivery_id = p.id
    and k.resolved_at < now() - make_interval(secs => $3::bigint)
    and to_regclass('postrider.dead_letter_' || to_char(id_time(p.id) at time zone 'UTC', 'YYYYMMDD')) is null
  returning k.delivery_id
)
select (select p.id from page p order by p.id desc limit 1), (select count(*) from gone)

-- name: trim_event_keys
-- Keys go with their events: $1 behind this event, $2 rows. Returns the last event of the page and how many were deleted.
-- Index event_key_by_event.
with page as materialized (
  select k.tenant_id, k.kind, k.key, k.event_id
  from event_key k
  where k.event_id > $1::uuid
    and k.event_id < (select below from kept_since where name = 'events')
  order by k.event_id
  limit $2::integer
),
gone as (
  delete from event_key k
  using page p
  where k.tenant_id = p.tenant_id
    and k.kind = p.kind
    and k.key = p.key
    and not exists (select from event_kept e where e.id = p.event_id)
  returning k.event_id
)
select (select p.event_id from page p order by p.event_id desc limit 1), (select count(*) from gone)

-- name: trim_replayed
-- As trim_event_keys. Primary key.
with page as materialized (
  select r.event_id, r.endpoint_id, r.delivery_id
  from replayed r
  where r.event_id > $1::uuid
    and r.event_id < (select below from kept_since where name = 'events')
  order by r.event_id
  limit $2::integer
),
gone as (
  delete from replayed r
  using page p
  where r.event_id = p.event_id
    and r.endpoint_id = p.endpoint_id
    and r.delivery_id = p.delivery_id
    and not exists (select from event_kept e where e.id = p.event_id)
    and to_regclass('postrider.event_' || to_char(id_time(p.event_id) at time zone 'UTC', 'YYYYMMDD')) is null
  returning r.event_id
)
select (select p.event_id from page p order by p.event_id desc limit 1), (select count(*) from gone)
