-- Retention: whole days are dropped, the rest is deleted some rows at a time. One session at a time does it, under the
-- lease `retention`.

-- name: partitions
-- Days of $1 (event, attempt, dead_letter, inbox) that ended more than $2 seconds ago, oldest first: the name of the table,
-- the day, the first id of the day and of the next one, whether it is attached, and whether a detach was interrupted.
-- Catalogue only.
select c.relname::text,
       d.day::text,
       id_floor(d.day::timestamp at time zone 'UTC'),
       id_floor((d.day + 1)::timestamp at time zone 'UTC'),
       i.inhrelid is not null,
       coalesce(i.inhdetachpending, false)
from pg_class c
cross join lateral (select to_date(right(c.relname, 8), 'YYYYMMDD') as day) as d
left join pg_inherits i on i.inhrelid = c.oid
where c.relnamespace = 'postrider'::regnamespace
  and c.relkind = 'r'
  and c.relname ~ ('^' || $1::text || '_[0-9]{8}$')
  and (d.day + 1)::timestamp at time zone 'UTC' < now() - make_interval(secs => $2::bigint)
order by c.relname

-- name: inbox_held_by
-- $1 day. What keeps it, or null.
select inbox_held_by($1::text::date)

-- name: commands
-- $1 parent, $2 partition: what detaches it, finishes that, puts it back, drops it, reads it and what was kept of it
-- (behind the row $1, $2 rows at most), and what copies rows ($1 ids) of the detached table to the kept one. As text,
-- because none of it can be prepared. A detached day keeps its bounds as a constraint: attaching it reads nothing. A row
-- that is in both tables is read from the kept one: its payload may have been erased there.
with day as (
  select $1::text as parent,
         $2::text as name,
         case $1 when 'inbox' then 'inbox' else $1 || '_day' end as days,
         $1 || '_kept' as kept,
         case when $1 in ('event', 'inbox') then 'id' else 'delivery_id' end as id,
         case $1
           when 'event' then 'k.id = t.id'
           when 'attempt' then 'k.delivery_id = t.delivery_id and k.attempt = t.attempt and k.bucket = t.bucket'
           else 'k.delivery_id = t.delivery_id and k.bucket = t.bucket'
         end as same_row,
         id_floor(to_date(right($2, 8), 'YYYYMMDD')::timestamp at time zone 'UTC') as low,
         id_floor((to_date(right($2, 8), 'YYYYMMDD') + 1)::timestamp at time zone 'UTC') as high
),
shape as (
  select string_agg(quote_ident(a.attname), ', ' order by a.attnum) as columns,
         string_agg('t.' || quote_ident(a.attname), ', ' order by a.attnum) as values
  from day
  join pg_attribute a on a.attrelid = format('postrider.%I', day.name)::regclass
  where a.attnum > 0
    and not a.attisdropped
    and a.attname <> 'is_kept'
)
select format('alter table postrider.%I detach partition postrider.%I concurrently', days, name),
       format('alter table postrider.%I detach partition postrider.%I finalize', days, name),
       format('alter table postrider.%I attach partition postrider.%I for values from (%L) to (%L)', days, name, low, high),
       format('drop table postrider.%I', name),
       format('select t.ctid::text, row_to_json(r)::text from postrider.%I t cross join lateral (select %s) r '
              'where t.ctid > $1::text::tid %s limit $2::integer', name, values,
              case when parent <> 'inbox'
                then format('and not exists (select from postrider.%I k where %s)', kept, same_row) end),
       case when parent <> 'inbox'
         then format('select t.ctid::text, row_to_json(r)::text from postrider.%I t cross join lateral (select %s) r '
                     'where t.ctid > $1::text::tid and t.%I >= %L and t.%I < %L limit $2::integer',
                     kept, values, id, low, id, high) end,
       case parent
         when 'event' then
           format('insert into postrider.event_kept (%s, is_kept) select %s, true from unnest($1::uuid[]) as i (id) '
                  'cross join lateral (select v.* from postrider.%I v where v.id >= postrider.first_delivery_id(i.id) '
                  'and v.id <= postrider.last_delivery_id(i.id) offset 0) t on conflict do nothing', columns, values, name)
         when 'attempt' then
           format('insert into postrider.attempt_kept (%s, is_kept) select %s, true from postrider.%I t '
                  'where t.delivery_id = any ($1::uuid[]) on conflict do nothing', columns, values, name)
         when 'dead_letter' then
           format('insert into postrider.dead_letter_kept (%s, is_kept) select %s, true from postrider.%I t '
                  'where t.resolved_at is null and $1::uuid[] is not null on conflict do nothing', columns, values, name)
       end
from day, shape

-- name: discard_dead_letters
-- Dead letters that are still unresolved after twice the time are discarded, so that what is kept for them can go.
-- $1 seconds that events are kept, $2 how many at most. Returns how many. Index dead_letter_unresolved_by_id.
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
-- Primary key. Sentinels stay; a row that a consumer's open transaction has locked is left for the next pass.
delete from inbox_queue q
using (
  select w.id, w.work, w.bucket
  from inbox_queue w
  where w.id < id_floor(date_trunc('day', now() - make_interval(secs => $1::bigint), 'UTC'))
    and w.bucket >= 0
    and not exists (select from source s where s.id = w.source_id)
  order by w.id
  limit $2::integer
  for update skip locked
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

-- name: trim_inbox_contents
-- Contents go with the newest of their messages, as keys do. $1 seconds, $2 how many at most. Index
-- inbox_content_by_id.
with gone as (
  select day::timestamp at time zone 'UTC' as day
  from generate_series(date_trunc('day', id_time((select min_id.id from inbox_content min_id order by min_id.id limit 1))
                                         at time zone 'UTC'),
                       date_trunc('day', (now() - make_interval(secs => $1::bigint)) at time zone 'UTC') - interval '1 day',
                       interval '1 day') as day
  where to_regclass('postrider.inbox_' || to_char(day, 'YYYYMMDD')) is null
),
old as (
  select c.source_id, c.digest
  from gone g
  cross join lateral (
    select of_day.source_id, of_day.digest
    from inbox_content of_day
    where of_day.id >= id_floor(g.day)
      and of_day.id < id_floor(g.day + interval '1 day')
    limit $2::integer
  ) as c
  limit $2
)
delete from inbox_content c
using old
where c.source_id = old.source_id
  and c.digest = old.digest

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

-- name: trim_disabled_spans
-- As long as pauses. $1 how many at most. Index disabled_span_ended.
delete from disabled_span
where id in (
  select id
  from disabled_span
  where until < now() - interval '1 year'
  limit $1::integer
)

-- name: trim_subscription_spans
-- As long as pauses. $1 how many at most. Index subscription_span_ended.
delete from subscription_span
where id in (
  select id
  from subscription_span
  where until < now() - interval '1 year'
  limit $1::integer
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
