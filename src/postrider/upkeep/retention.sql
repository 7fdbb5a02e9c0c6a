-- Retention: whole days are dropped, other rows are deleted some at a time. One session at a time does it, under the lease
-- `retention`.

-- name: partitions
-- Days of a table (event, attempt, dead_letter, inbox) that ended more than `retain_seconds` ago, oldest first. `low` and
-- `high` are the first IDs of the day and of the next day; `is_detaching`: a detach was interrupted. Reads the system
-- catalog only.
-- not null: all
select c.relname::text as name,
       d.day::text as date,
       id_floor(d.day::timestamp at time zone 'UTC') as low,
       id_floor((d.day + 1)::timestamp at time zone 'UTC') as high,
       i.inhrelid is not null as is_attached,
       coalesce(i.inhdetachpending, false) as is_detaching
from pg_class c
cross join lateral (select to_date(right(c.relname, 8), 'YYYYMMDD') as day) as d
left join pg_inherits i on i.inhrelid = c.oid
where c.relnamespace = 'postrider'::regnamespace
  and c.relkind = 'r'
  and c.relname ~ ('^' || :parent::text || '_[0-9]{8}$')
  and (d.day + 1)::timestamp at time zone 'UTC' < now() - make_interval(secs => :retain_seconds::bigint)
order by c.relname

-- name: inbox_held_by
-- The reason why the day cannot be dropped, or null.
select inbox_held_by(:day::text::date) as held_by

-- name: commands
-- SQL text for a partition, because none of it can be prepared: to detach it, finish an interrupted detach, attach it again,
-- drop it, count its blocks, read the rows of its blocks from $1 to before $2, read the kept rows of its day (after row $1,
-- at most $2), and copy rows ($1 IDs) of the detached table to the kept table. Blocks, because rows come in no particular
-- order: a join may be a right anti join (Postgres 16), and a scan may start in the middle of a table. A detached day keeps its bounds as a constraint, so attaching it reads nothing. A row that is in
-- both tables is read from the kept one, because its payload may have been erased there.
-- not null: all but read_kept, copy
with day as (
  select :parent::text as parent,
         :partition::text as name,
         case :parent when 'inbox' then 'inbox' else :parent || '_day' end as days,
         :parent || '_kept' as kept,
         case when :parent in ('event', 'inbox') then 'id' else 'delivery_id' end as id,
         case :parent
           when 'event' then 'k.id = t.id'
           when 'attempt' then 'k.delivery_id = t.delivery_id and k.attempt = t.attempt and k.bucket = t.bucket'
           else 'k.delivery_id = t.delivery_id and k.bucket = t.bucket'
         end as same_row,
         id_floor(to_date(right(:partition, 8), 'YYYYMMDD')::timestamp at time zone 'UTC') as low,
         id_floor((to_date(right(:partition, 8), 'YYYYMMDD') + 1)::timestamp at time zone 'UTC') as high
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
select format('alter table postrider.%I detach partition postrider.%I concurrently', days, name) as detach,
       format('alter table postrider.%I detach partition postrider.%I finalize', days, name) as finalize,
       format('alter table postrider.%I attach partition postrider.%I for values from (%L) to (%L)', days, name, low,
              high) as attach,
       format('drop table postrider.%I', name) as drop_table,
       format('select pg_relation_size(%L) / current_setting(''block_size'')::bigint', 'postrider.' || quote_ident(name))
         as count_blocks,
       format('select row_to_json(r)::text from postrider.%I t cross join lateral (select %s) r '
              'where t.ctid >= $1::text::tid and t.ctid < $2::text::tid %s', name, values,
              case when parent <> 'inbox'
                then format('and not exists (select from postrider.%I k where %s)', kept, same_row) end) as read_rows,
       case when parent <> 'inbox'
         then format('select t.ctid::text, row_to_json(r)::text from postrider.%I t cross join lateral (select %s) r '
                     'where t.ctid > $1::text::tid and t.%I >= %L and t.%I < %L order by t.ctid limit $2::integer',
                     kept, values, id, low, id, high) end as read_kept,
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
       end as copy
from day, shape

-- name: discard_dead_letters
-- Discards dead letters that are still unresolved after twice `retain_seconds`, so that the rows kept for them can be deleted.
-- Returns how many. Index dead_letter_unresolved_by_id.
-- not null: all
with old as (
  select delivery_id, bucket
  from dead_letter
  where delivery_id < id_floor(now() - 2 * make_interval(secs => :retain_seconds::bigint))
    and resolved_at is null
  limit :rows::integer
),
discarded as (
  update dead_letter d
  set resolved_at = now(),
      resolution = 'discarded'
  from old
  where d.delivery_id = old.delivery_id
    and d.bucket = old.bucket
    and d.resolved_at is null
  returning d.delivery_id
)
select count(*) as discarded
from discarded

-- name: trim_replays
-- Scans replay, which is small.
with old as (
  select id
  from replay
  where finished_at < now() - make_interval(secs => :retain_seconds::bigint)
  limit :rows::integer
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
-- Deletes old work of deleted sources, which has no consumer any more. Primary key. Sentinel rows stay; a row that is locked
-- by a consumer's open transaction is left to the next pass.
delete from inbox_queue q
using (
  select w.id, w.work, w.bucket
  from inbox_queue w
  where w.id < id_floor(date_trunc('day', now() - make_interval(secs => :retain_seconds::bigint), 'UTC'))
    and w.bucket >= 0
    and not exists (select from source s where s.id = w.source_id)
  order by w.id
  limit :rows::integer
  for update skip locked
) as old
where q.id = old.id
  and q.work = old.work
  and q.bucket = old.bucket

-- name: trim_inbox_keys
-- Keys are deleted with their messages: those of old days that have no table any more. A day that is held keeps its keys.
-- Index inbox_key_by_id.
with gone as (
  select day::timestamp at time zone 'UTC' as day
  from generate_series(date_trunc('day', id_time((select min_id.id from inbox_key min_id order by min_id.id limit 1))
                                         at time zone 'UTC'),
                       date_trunc('day', (now() - make_interval(secs => :retain_seconds::bigint)) at time zone 'UTC') - interval '1 day',
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
    limit :rows::integer
  ) as k
  limit :rows
)
delete from inbox_key k
using old
where k.source_id = old.source_id
  and k.key = old.key

-- name: trim_inbox_contents
-- As trim_inbox_keys: contents are deleted with the newest of their messages. Index inbox_content_by_id.
with gone as (
  select day::timestamp at time zone 'UTC' as day
  from generate_series(date_trunc('day', id_time((select min_id.id from inbox_content min_id order by min_id.id limit 1))
                                         at time zone 'UTC'),
                       date_trunc('day', (now() - make_interval(secs => :retain_seconds::bigint)) at time zone 'UTC') - interval '1 day',
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
    limit :rows::integer
  ) as c
  limit :rows
)
delete from inbox_content c
using old
where c.source_id = old.source_id
  and c.digest = old.digest

-- name: trim_audit
-- Index audit_by_time.
delete from audit
where id in (
  select a.id
  from audit a
  where a.at < now() - make_interval(secs => :retain_seconds::bigint)
  order by a.at, a.id
  limit :rows::integer
)

-- name: trim_former_urls
-- Attempts that dialled them are gone. Index former_url_by_time.
delete from former_url f
using (
  select o.endpoint_id, o.version
  from former_url o
  where o.until < now() - make_interval(secs => :retain_seconds::bigint) - interval '1 day'
  order by o.until
  limit :rows::integer
) as old
where f.endpoint_id = old.endpoint_id
  and f.version = old.version

-- name: trim_rollups
-- Primary key, which begins with the hour.
delete from rollup r
using (
  select o.hour, o.tenant_id, o.endpoint_id, o.event_type, o.node_id
  from rollup o
  where o.hour < now() - make_interval(secs => :retain_seconds::bigint)
  order by o.hour
  limit :rows::integer
) as old
where r.hour = old.hour
  and r.tenant_id = old.tenant_id
  and r.endpoint_id = old.endpoint_id
  and r.event_type = old.event_type
  and r.node_id = old.node_id

-- name: trim_closed_hours
-- After their rollups, so that none is computed again. Primary key.
delete from rollup_closed
where hour in (
  select c.hour
  from rollup_closed c
  where c.hour < now() - make_interval(secs => :retain_seconds::bigint)
  order by c.hour
  limit :rows::integer
)

-- name: trim_disabled_spans
-- Kept as long as pauses. Index disabled_span_ended.
delete from disabled_span
where id in (
  select id
  from disabled_span
  where until < now() - interval '1 year'
  limit :rows::integer
)

-- name: trim_subscription_spans
-- Kept as long as pauses. Index subscription_span_ended.
delete from subscription_span
where id in (
  select id
  from subscription_span
  where until < now() - interval '1 year'
  limit :rows::integer
)

-- name: trim_brake_spans
-- As trim_pauses. Index brake_span_ended.
delete from brake_span
where id in (
  select id
  from brake_span
  where until < now() - interval '1 year'
  limit :rows::integer
)

-- name: trim_unserved_spans
-- As trim_pauses. Index unserved_span_ended.
delete from unserved_span
where id in (
  select id
  from unserved_span
  where until < now() - interval '1 year'
  limit :rows::integer
)

-- name: trim_pauses
-- A year is longer than any delivery lives. Index pause_span_ended.
delete from pause_span
where id in (
  select id
  from pause_span
  where until < now() - interval '1 year'
  limit :rows::integer
)
