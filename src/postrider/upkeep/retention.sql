-- Retention: whole days are dropped, the rest is deleted some rows at a time. Safe to run on several nodes: a session
-- lock lets one of them do it.

-- name: lock_retention
select pg_try_advisory_lock(hashtextextended('postrider.retention', 0))

-- name: unlock_retention
select pg_advisory_unlock(hashtextextended('postrider.retention', 0))

-- name: keep_events_since
-- $1 seconds. From now on nothing older is replayed; so what is found to hold a day is all that ever will.
update kept_since
set since = greatest(since, now() - make_interval(secs => $1::bigint))
where name = 'events'

-- name: partitions
-- Days of $1 (event, attempt, dead_letter, inbox) that ended more than $2 seconds ago, oldest first: the name of the table,
-- the day, whether it is attached, and whether a detach was interrupted. Catalogue only.
select c.relname::text,
       to_date(right(c.relname, 8), 'YYYYMMDD')::text,
       i.inhrelid is not null,
       coalesce(i.inhdetachpending, false)
from pg_class c
left join pg_inherits i on i.inhrelid = c.oid
where c.relnamespace = 'postrider'::regnamespace
  and c.relkind = 'r'
  and c.relname ~ ('^' || $1::text || '_[0-9]{8}$')
  and (to_date(right(c.relname, 8), 'YYYYMMDD') + 1)::timestamp at time zone 'UTC' < now() - make_interval(secs => $2::bigint)
order by c.relname

-- name: held_by
-- $1 parent, $2 day. What keeps it, or null.
select held_by($1::text, $2::text::date)

-- name: commands
-- $1 parent, $2 partition: what takes it away and what puts it back, as text, since none of it can be prepared; and what
-- reads it, behind the row $1 and $2 rows at most. A detached day has kept its bounds as a constraint: attaching it reads
-- nothing.
select format('alter table postrider.%I detach partition postrider.%I concurrently', $1::text, $2::text),
       format('alter table postrider.%I detach partition postrider.%I finalize', $1, $2),
       format('alter table postrider.%I attach partition postrider.%I for values from (%L) to (%L)', $1, $2,
              id_floor(to_date(right($2, 8), 'YYYYMMDD')::timestamp at time zone 'UTC'),
              id_floor((to_date(right($2, 8), 'YYYYMMDD') + 1)::timestamp at time zone 'UTC')),
       format('drop table postrider.%I', $2),
       format('select t.ctid::text, row_to_json(t)::text from postrider.%I t where t.ctid > $1::text::tid limit $2::integer',
              $2)

-- name: discard_dead_letters
-- Dead letters that nobody looked at in twice the time are given up, so that the days they hold can go.
-- $1 seconds that events are kept, $2 how many at most. Returns how many.
with old as (
  select delivery_id, bucket
  from dead_letter
  where delivery_id < id_floor(now() - 2 * make_interval(secs => $1::bigint))
    and resolved_at is null
  limit $2::integer
),
given_up as (
  update dead_letter d
  set resolved_at = now(),
      resolution = 'discarded'
  from old
  where d.delivery_id = old.delivery_id
    and d.bucket = old.bucket
    and d.resolved_at is null
  returning d.delivery_id
)
select count(*) from given_up

-- name: trim_event_keys
-- $1 seconds, $2 how many at most. Index event_key_by_event.
with old as (
  select tenant_id, kind, key
  from event_key
  where event_id < id_floor(date_trunc('day', now() - make_interval(secs => $1::bigint), 'UTC'))
  limit $2::integer
)
delete from event_key k
using old
where k.tenant_id = old.tenant_id
  and k.kind = old.kind
  and k.key = old.key

-- name: trim_replayed
-- $1 seconds, $2 how many at most. Primary key. What a day's partition is held by stays.
delete from replayed r
where (r.event_id, r.endpoint_id, r.delivery_id) in (
  select o.event_id, o.endpoint_id, o.delivery_id
  from replayed o
  where o.event_id < id_floor(date_trunc('day', now() - make_interval(secs => $1::bigint), 'UTC'))
    and to_regclass('postrider.event_' || to_char(id_time(o.event_id) at time zone 'UTC', 'YYYYMMDD')) is null
  limit $2::integer
)

-- name: trim_replays
-- $1 seconds, $2 how many at most. Scans replay, which is small.
with old as (
  select id
  from replay
  where finished_at < now() - make_interval(secs => $1::bigint)
  limit $2::integer
),
counts as (
  delete from replay_progress p
  using old
  where p.replay_id = old.id
)
delete from replay r
using old
where r.id = old.id

-- name: abandon_messages
-- Work of sources that were deleted, once it is past its time: nobody is left to do it. $1 seconds, $2 how many at most.
-- Primary key. Sentinels stay.
delete from inbox_queue q
using (
  select w.id, w.work, w.bucket
  from inbox_queue w
  where w.id < id_floor(date_trunc('day', now() - make_interval(secs => $1::bigint), 'UTC'))
    and w.bucket >= 0
    and not exists (select from source s where s.id = w.source_id)
  order by w.id
  limit $2::integer
) as old
where q.id = old.id
  and q.work = old.work
  and q.bucket = old.bucket

-- name: trim_inbox_keys
-- Keys go with their messages: those of days that are past their time and have no table any more; a day that is held keeps
-- its keys. $1 seconds, $2 how many at most. Index inbox_key_by_id.
with gone as (
  select day::timestamp at time zone 'UTC' as day
  from generate_series(date_trunc('day', id_time((select min_id.id from inbox_key min_id order by min_id.id limit 1))
                                         at time zone 'UTC'),
                       date_trunc('day', (now() - make_interval(secs => $1::bigint)) at time zone 'UTC') - interval '1 day',
                       interval '1 day') as day
  where to_regclass('postrider.inbox_' || to_char(day, 'YYYYMMDD')) is null
),
old as (
  select k.source_id, k.key
  from gone g
  cross join lateral (
    select of_day.source_id, of_day.key
    from inbox_key of_day
    where of_day.id >= id_floor(g.day)
      and of_day.id < id_floor(g.day + interval '1 day')
    limit $2::integer
  ) as k
  limit $2
)
delete from inbox_key k
using old
where k.source_id = old.source_id
  and k.key = old.key

-- name: trim_audit
-- $1 seconds, $2 how many at most. Index audit_by_time.
delete from audit
where id in (
  select a.id
  from audit a
  where a.at < now() - make_interval(secs => $1::bigint)
  order by a.at, a.id
  limit $2::integer
)

-- name: trim_rollups
-- $1 seconds, $2 how many at most. Primary key, which begins with the hour.
delete from rollup r
using (
  select o.hour, o.tenant_id, o.endpoint_id, o.event_type, o.node_id
  from rollup o
  where o.hour < now() - make_interval(secs => $1::bigint)
  order by o.hour
  limit $2::integer
) as old
where r.hour = old.hour
  and r.tenant_id = old.tenant_id
  and r.endpoint_id = old.endpoint_id
  and r.event_type = old.event_type
  and r.node_id = old.node_id

-- name: trim_closed_hours
-- After their rollups, so that none is computed again. $1 seconds, $2 how many at most. Primary key.
delete from rollup_closed
where hour in (
  select c.hour
  from rollup_closed c
  where c.hour < now() - make_interval(secs => $1::bigint)
  order by c.hour
  limit $2::integer
)

-- name: trim_pauses
-- Longer than any delivery lives. $1 how many at most. Index pause_span_ended.
delete from pause_span
where id in (
  select id
  from pause_span
  where until < now() - interval '1 year'
  limit $1::integer
)
