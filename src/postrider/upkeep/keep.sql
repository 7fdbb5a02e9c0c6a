-- Rows of a day that are still needed: they are found, moved to the kept tables before the day is dropped, and deleted when
-- nothing needs them any more. A need only changes its form, in one transaction: a delivery becomes a dead letter, a dead
-- letter or a replay becomes a delivery. So a statement that reads all forms at once misses none.

-- name: raise_kept_since
-- From now on nothing older is replayed, except unresolved dead letters.
update kept_since k
set since = greatest(k.since, f.since),
    below = id_floor(greatest(k.since, f.since))
from (
  values ('events', date_trunc('day', now() - make_interval(secs => :events_seconds::bigint), 'UTC')),
         ('attempts', date_trunc('day', now() - make_interval(secs => :attempts_seconds::bigint), 'UTC'))
) as f (name, since)
where k.name = f.name

-- name: buckets_in_use
-- Buckets with deliveries whose IDs are in the range. Index queue_pkey.
-- not null: all
select l.bucket
from bucket_lease l
where exists (select from queue q where q.bucket = l.bucket and q.id >= :from::uuid and q.id < :before::uuid)
order by l.bucket

-- name: deliveries_in_bucket
-- Pending deliveries in order. Index queue_pkey.
-- not null: all
select q.id, q.event_id
from queue q
where q.bucket = :bucket::integer
  and q.id >= :from::uuid
  and q.id < :before::uuid
order by q.id
limit :rows::integer

-- name: needed_events
-- Events, in order, that something other than an original delivery needs: a pending replay, a wide fan-out, an unresolved
-- dead letter, or a range replay. `day_table` has the rows of the day. Indexes: queue_replayed, the key of fanout_task,
-- dead_letter_unresolved_by_event.
-- not null: all
-- row: needed
select n.id
from (
  (select q.event_id as id
   from queue q
   where q.replay_id is not null
     and q.event_id >= :from::uuid
     and q.event_id < :before::uuid
   order by q.event_id
   limit :rows::integer)
  union
  (select f.event_id
   from fanout_task f
   where f.event_id >= :from
     and f.event_id < :before
   order by f.event_id
   limit :rows)
  union
  (select d.event_id
   from dead_letter d
   where d.resolved_at is null
     and d.event_id >= :from
     and d.event_id < :before
   order by d.event_id
   limit :rows)
  union
  select needed_by_replays('event', :day_table::text::regclass, :from, :before, :rows)
) as n
order by n.id
limit :rows

-- name: needed_attempts
-- As needed_events: deliveries whose attempts are needed by an unresolved dead letter or a replay of missing deliveries.
-- Index dead_letter_unresolved_by_id.
-- not null: all
-- row: needed
select n.id
from (
  (select d.delivery_id as id
   from dead_letter d
   where d.resolved_at is null
     and d.delivery_id >= :from::uuid
     and d.delivery_id < :before::uuid
   order by d.delivery_id
   limit :rows::integer)
  union
  select needed_by_replays('attempt', :day_table::text::regclass, :from, :before, :rows)
) as n
order by n.id
limit :rows

-- name: needed_dead_letters
-- As needed_events: the unresolved ones. Index dead_letter_unresolved_by_id.
-- not null: all
-- row: needed
select d.delivery_id as id
from dead_letter d
where d.resolved_at is null
  and d.delivery_id >= :from::uuid
  and d.delivery_id < :before::uuid
  and not d.is_kept
order by d.delivery_id
limit :rows::integer

-- name: move_events
-- All rows (versions) of the events, in the day from `from` to `before`. A session that waits for one of the rows gets a
-- serialization failure, and finds the row when it retries. Locks the rows. The IDs are compared as an array: with a join
-- the planner reads the whole day.
update event e
set is_kept = true
where e.id = any (array(
    select v.id
    from unnest(:ids::uuid[]) as i (id)
    cross join lateral (
      select d.id
      from event_day d
      where d.id >= first_delivery_id(i.id)
        and d.id <= last_delivery_id(i.id)
        and d.id >= :from::uuid
        and d.id < :before::uuid
      order by d.id
      limit 1000
    ) as v
  ))
  and e.id >= :from
  and e.id < :before
  and not e.is_kept

-- name: move_attempts
-- As move_events; `ids` are deliveries.
update attempt a
set is_kept = true
where a.delivery_id = any (:ids::uuid[])
  and a.delivery_id >= :from::uuid
  and a.delivery_id < :before::uuid
  and not a.is_kept

-- name: move_dead_letters
-- As move_attempts. One that has been resolved since stays in its day.
update dead_letter d
set is_kept = true
where d.delivery_id = any (:ids::uuid[])
  and d.delivery_id >= :from::uuid
  and d.delivery_id < :before::uuid
  and d.resolved_at is null
  and not d.is_kept

-- name: trim_kept_events
-- The next page of kept events. Deletes those that nothing needs, except while their day still has a table, which is not
-- archived yet. Returns the last ID of the page and how many were deleted.
-- not null: deleted
-- row: trimmed
with page as materialized (
  select k.id
  from event_kept k
  where k.id > :after::uuid
  order by k.id
  limit :rows::integer
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
select (select p.id from page p order by p.id desc limit 1) as last_id, (select count(*) from gone) as deleted

-- name: trim_kept_attempts
-- As trim_kept_events, for deliveries. The history of one that has ended is kept for `retain_seconds` after its last attempt.
-- not null: deleted
-- row: trimmed
with page as materialized (
  select k.delivery_id as id, max(k.started_at) as last_at
  from attempt_kept k
  where k.delivery_id > :after::uuid
  group by k.delivery_id
  order by k.delivery_id
  limit :rows::integer
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
    and p.last_at < now() - make_interval(secs => :retain_seconds::bigint)
    and not exists (select from needed n where n.id = p.id)
    and to_regclass('postrider.attempt_' || to_char(id_time(p.id) at time zone 'UTC', 'YYYYMMDD')) is null
  returning k.delivery_id
)
select (select p.id from page p order by p.id desc limit 1) as last_id, (select count(*) from gone) as deleted

-- name: trim_kept_dead_letters
-- As trim_kept_events: those that were resolved more than `retain_seconds` ago.
-- not null: deleted
-- row: trimmed
with page as materialized (
  select k.delivery_id as id
  from dead_letter_kept k
  where k.delivery_id > :after::uuid
  order by k.delivery_id
  limit :rows::integer
),
gone as (
  delete from dead_letter_kept k
  using page p
  where k.delivery_id = p.id
    and k.resolved_at < now() - make_interval(secs => :retain_seconds::bigint)
    and to_regclass('postrider.dead_letter_' || to_char(id_time(p.id) at time zone 'UTC', 'YYYYMMDD')) is null
  returning k.delivery_id
)
select (select p.id from page p order by p.id desc limit 1) as last_id, (select count(*) from gone) as deleted

-- name: trim_event_keys
-- Keys are deleted with their events. As trim_kept_events; pages are in the order of events. Index event_key_by_event.
-- not null: deleted
-- row: trimmed
with page as materialized (
  select k.tenant_id, k.kind, k.key, k.event_id
  from event_key k
  where k.event_id > :after::uuid
    and k.event_id < (select below from kept_since where name = 'events')
  order by k.event_id
  limit :rows::integer
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
select (select p.event_id from page p order by p.event_id desc limit 1) as last_id,
       (select count(*) from gone) as deleted

-- name: trim_replayed
-- As trim_event_keys. Primary key.
-- not null: deleted
-- row: trimmed
with page as materialized (
  select r.event_id, r.endpoint_id, r.delivery_id
  from replayed r
  where r.event_id > :after::uuid
    and r.event_id < (select below from kept_since where name = 'events')
  order by r.event_id
  limit :rows::integer
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
select (select p.event_id from page p order by p.event_id desc limit 1) as last_id,
       (select count(*) from gone) as deleted
