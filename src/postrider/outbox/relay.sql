-- The relay's side of an outbox, in the database where the outbox is.

-- part: row_columns
-- The table may belong to another team, and its columns may hold anything: texts are cut beyond every limit that an
-- event has, data of more than :data_bytes_max bytes is not read, and a transaction ID is no more than fits.
select o.id, least(o.xid, '9223372036854775807'::xid8)::text::bigint as xid, o.event_id,
       left(o.public_id, 300) as public_id, left(o.tenant_id, 300) as tenant_id, left(o.type, 300) as type,
       case when octet_length(o.data) <= :data_bytes_max::bigint then o.data end as data,
       case when octet_length(o.versions) <= :data_bytes_max then o.versions end as versions,
       o.versions is not null as has_versions, left(o.version, 300) as version, o.occurred_at, left(o.subject, 300) as subject,
       left(o.traceparent, 300) as traceparent, o.created_at, o.cut_from_bytes,
       case when o.set_aside_at is not null then coalesce(left(o.last_error, 1000), 'the row was set aside') end
         as set_aside_for

-- part: is_not_held
-- A tenant that is null is not held. In this form the planner expects to keep nearly all rows, so it reads the first ones by
-- the index. From statistics it would conclude that none are left if one tenant has all of them, and sort them all.
nullif(coalesce(f.tenant_id = any (:held_tenants::text[]), false), true) is not null

-- part: data_bytes
coalesce(least(octet_length(f.data) + coalesce(octet_length(f.versions), 0), :data_bytes_max::bigint), 0) as bytes

-- part: is_fresh
attempts = 0
      and processed_at is null

-- part: is_due_again
attempts > 0
      and set_aside_at is null
      and processed_at is null

-- name: current_snapshot
-- not null: all
select pg_current_snapshot()::text as snapshot;

-- name: no_flush
-- For the rest of this transaction: after a crash it is written again.
select set_config('synchronous_commit', 'off', true) as synchronous_commit;

-- name: fall_asleep
-- From here on publish() notifies, for :milliseconds. See outbox_write().
select setval('outbox_idle_until', (extract(epoch from clock_timestamp()) * 1000)::bigint + :milliseconds::bigint) as until;

-- name: wake_up
select setval('outbox_idle_until', 1) as until;

-- name: set_data_bytes_max
-- The most that publish() accepts.
update outbox_setting
set data_bytes_max = :bytes::integer
where data_bytes_max <> :bytes;

-- name: late_rows
-- Rows of :transactions, which were in progress at the last reading, without those of :held_tenants; :rows_max and
-- :bytes_max, but at least one row.
-- Index: outbox_fresh, then the key. Locks: the rows; those that another transaction has locked are left out.
-- row: outbox
-- not null: id, xid
{{row_columns}}
from (
  select n.xid, n.id, sum(n.bytes) over (order by n.xid, n.id) - n.bytes as bytes_before
  from (
    select f.xid, f.id, {{data_bytes}}
    from outbox f
    where xid = any (:transactions::text[]::xid8[])
      and {{is_fresh}}
      and {{is_not_held}}
    order by f.xid, f.id
    limit :rows_max::integer
  ) n
) s
cross join lateral (
  select *
  from outbox r
  where r.id = s.id
      and {{is_fresh}}
  offset 0
  for update skip locked
) o
where s.bytes_before < :bytes_max::bigint
order by s.xid, s.id;

-- name: fresh_rows
-- Rows after (:xid, :id), otherwise as late_rows.
-- row: outbox
-- not null: id, xid
{{row_columns}}
from (
  select n.xid, n.id, sum(n.bytes) over (order by n.xid, n.id) - n.bytes as bytes_before
  from (
    select f.xid, f.id, {{data_bytes}}
    from outbox f
    where (f.xid, f.id) > (:xid::text::xid8, :id::bigint)
      and {{is_fresh}}
      and {{is_not_held}}
    order by f.xid, f.id
    limit :rows_max::integer
  ) n
) s
cross join lateral (
  select *
  from outbox r
  where r.id = s.id
      and {{is_fresh}}
  offset 0
  for update skip locked
) o
where s.bytes_before < :bytes_max::bigint
order by s.xid, s.id;

-- name: held_rows
-- Rows of :tenant from (:xid, :id) on, otherwise as late_rows. Reads what is between them in the index, too, which is
-- mostly theirs: the rows of others are gone.
-- row: outbox
-- not null: id, xid
{{row_columns}}
from (
  select n.xid, n.id, sum(n.bytes) over (order by n.xid, n.id) - n.bytes as bytes_before
  from (
    select f.xid, f.id, {{data_bytes}}
    from outbox f
    where (f.xid, f.id) >= (:xid::text::xid8, :id::bigint)
      and f.tenant_id = :tenant::text
      and {{is_fresh}}
    order by f.xid, f.id
    limit :rows_max::integer
  ) n
) s
cross join lateral (
  select *
  from outbox r
  where r.id = s.id
      and {{is_fresh}}
  offset 0
  for update skip locked
) o
where s.bytes_before < :bytes_max::bigint
order by s.xid, s.id;

-- name: failed_rows
-- Rows that were rejected before and are due again, otherwise as late_rows. Index: outbox_failed, then the key. Locks: the
-- rows.
-- row: outbox
-- not null: id, xid
{{row_columns}}
from (
  select n.retry_at, n.id, sum(n.bytes) over (order by n.retry_at, n.id) - n.bytes as bytes_before
  from (
    select f.retry_at, f.id, {{data_bytes}}
    from outbox f
    where {{is_due_again}}
      and f.retry_at <= now()
      and {{is_not_held}}
    order by f.retry_at, f.id
    limit :rows_max::integer
  ) n
) s
cross join lateral (
  select *
  from outbox r
  where r.id = s.id
      and {{is_due_again}}
  offset 0
  for update skip locked
) o
where s.bytes_before < :bytes_max::bigint
order by s.retry_at, s.id;

-- name: listed_rows
-- The rows with these :ids, unless they are done meanwhile. A row that publish() set aside has no attempt yet. Index: the key.
-- Locks: the rows.
-- row: outbox
-- not null: id, xid
{{row_columns}}
from outbox o
where o.id = any (:ids::bigint[])
  and (o.set_aside_at is null or o.attempts = 0)
  and o.processed_at is null
order by o.xid, o.id
for update skip locked;

-- name: remove_rows
-- Their events are written by the same transaction.
delete from outbox
where id = any (:ids::bigint[]);

-- name: mark_processed
-- Their events are published.
update outbox
set processed_at = now(),
    set_aside_at = null
where id = any (:ids::bigint[])
  and processed_at is null;

-- name: remove_processed
-- Rows that were processed more than :seconds ago, :rows_max at most. Index: outbox_processed, then the key.
delete from outbox
where id = any (array(select o.id
                      from outbox o
                      where o.processed_at < now() - make_interval(secs => :seconds::bigint)
                      order by o.processed_at
                      limit :rows_max::integer));

-- name: old_rows
-- Rows that were processed more than :seconds ago, after (:after_time, :after_id), :rows_max and :bytes_max at most, but at
-- least one; each as JSON. Of a row with more than :row_bytes_max only its ID and size. Index: outbox_processed, then the
-- key.
-- not null: all
select o.id, o.processed_at,
       case when s.bytes <= :row_bytes_max::bigint then row_to_json(o)
            else json_build_object('id', o.id, 'bytes', s.bytes) end::text as line
from (
  select n.processed_at, n.id, n.bytes,
         sum(least(n.bytes, :row_bytes_max)) over (order by n.processed_at, n.id) - least(n.bytes, :row_bytes_max)
           as bytes_before
  from (
    select f.processed_at, f.id,
           coalesce(octet_length(f.data), 0)::bigint + coalesce(octet_length(f.type), 0)
             + coalesce(octet_length(f.tenant_id), 0) + coalesce(octet_length(f.public_id), 0)
             + coalesce(octet_length(f.version), 0) + coalesce(octet_length(f.subject), 0)
             + coalesce(octet_length(f.traceparent), 0) + coalesce(octet_length(f.last_error), 0) as bytes
    from outbox f
    where f.processed_at is not null
      and f.processed_at < now() - make_interval(secs => :seconds::bigint)
      and (f.processed_at, f.id) > (:after_time::timestamptz, :after_id::bigint)
    order by f.processed_at, f.id
    limit :rows_max::integer
  ) n
) s
join outbox o on o.id = s.id
where s.bytes_before < :bytes_max::bigint
order by s.processed_at, s.id;

-- name: fail_rows
-- :ids and what was wrong with each; :attempts_max, after which a row is set aside; :retry_seconds to wait after each
-- attempt; :final_ids, which are set aside at once. Returns the rows. Index: the key; a join would read all of it after a
-- plan made on the empty table.
-- not null: id, is_set_aside
update outbox o
set attempts = o.attempts + 1,
    last_error = (:errors::text[])[array_position(:ids::bigint[], o.id)],
    retry_at = now() + make_interval(
      secs => (:retry_seconds::integer[])[least(o.attempts + 1, cardinality(:retry_seconds::integer[]))]),
    set_aside_at = case when o.attempts + 1 >= :attempts_max::integer or o.id = any (:final_ids::bigint[])
                        then coalesce(o.set_aside_at, now()) end
where o.id = any (:ids::bigint[])
  and o.processed_at is null
returning o.id, o.set_aside_at is not null as is_set_aside, left(o.tenant_id, 300) as tenant_id,
          left(o.type, 300) as type, o.last_error;
