-- The relay's side of an outbox, in the database where the outbox is.

-- name: current_snapshot
select pg_current_snapshot()::text;

-- name: no_flush
-- For the rest of this transaction: what a crash would undo is said again.
select set_config('synchronous_commit', 'off', true);

-- name: fall_asleep
-- From here on publish() notifies, for $1 milliseconds. See outbox_write().
select setval('outbox_asleep', (extract(epoch from clock_timestamp()) * 1000)::bigint + $1::bigint);

-- name: wake_up
select setval('outbox_asleep', 1);

-- name: set_data_bytes_max
-- $1 what publish() accepts at most.
update outbox_setting
set data_bytes_max = $1::integer
where data_bytes_max <> $1::integer;

-- name: late_rows
-- Rows of the transactions $1, which were in progress at the last reading; $2 rows and $3 bytes at most, but at least
-- one. Index: outbox_fresh, then the key. Locks: the rows; those that another transaction has locked are left out.
-- The table may be another's, and its columns may hold anything: texts are cut beyond every limit that an event has,
-- data of more than $4 bytes is not read, and a transaction id is no more than fits.
select o.id, least(o.xid, '9223372036854775807'::xid8)::text::bigint, o.event_id,
       left(o.public_id, 300), left(o.tenant_id, 300), left(o.type, 300),
       case when octet_length(o.data) <= $4::bigint then o.data end, left(o.version, 300), o.occurred_at,
       left(o.subject, 300), left(o.traceparent, 300), o.created_at
from (
  select n.xid, n.id, sum(n.bytes) over (order by n.xid, n.id) - n.bytes as bytes_before
  from (
    select f.xid, f.id, coalesce(least(octet_length(f.data), $4::bigint), 0) as bytes
    from outbox f
    where f.xid = any ($1::text[]::xid8[])
      and f.attempts = 0
      and f.processed_at is null
    order by f.xid, f.id
    limit $2::integer
  ) n
) s
cross join lateral (
  select *
  from outbox r
  where r.id = s.id
    and r.attempts = 0
    and r.processed_at is null
  offset 0
  for update skip locked
) o
where s.bytes_before < $3::bigint
order by s.xid, s.id;

-- name: fresh_rows
-- Rows after ($1 xid, $2 id), otherwise as late_rows: $3 rows and $4 bytes at most, data of at most $5 bytes.
select o.id, least(o.xid, '9223372036854775807'::xid8)::text::bigint, o.event_id,
       left(o.public_id, 300), left(o.tenant_id, 300), left(o.type, 300),
       case when octet_length(o.data) <= $5::bigint then o.data end, left(o.version, 300), o.occurred_at,
       left(o.subject, 300), left(o.traceparent, 300), o.created_at
from (
  select n.xid, n.id, sum(n.bytes) over (order by n.xid, n.id) - n.bytes as bytes_before
  from (
    select f.xid, f.id, coalesce(least(octet_length(f.data), $5::bigint), 0) as bytes
    from outbox f
    where (f.xid, f.id) > ($1::text::xid8, $2::bigint)
      and f.attempts = 0
      and f.processed_at is null
    order by f.xid, f.id
    limit $3::integer
  ) n
) s
cross join lateral (
  select *
  from outbox r
  where r.id = s.id
    and r.attempts = 0
    and r.processed_at is null
  offset 0
  for update skip locked
) o
where s.bytes_before < $4::bigint
order by s.xid, s.id;

-- name: failed_rows
-- Rows that were refused before and are due again, otherwise as late_rows: $1 rows and $2 bytes at most, data of at most $3
-- bytes. Index: outbox_failed, then the key. Locks: the rows.
select o.id, least(o.xid, '9223372036854775807'::xid8)::text::bigint, o.event_id,
       left(o.public_id, 300), left(o.tenant_id, 300), left(o.type, 300),
       case when octet_length(o.data) <= $3::bigint then o.data end, left(o.version, 300), o.occurred_at,
       left(o.subject, 300), left(o.traceparent, 300), o.created_at
from (
  select n.retry_at, n.id, sum(n.bytes) over (order by n.retry_at, n.id) - n.bytes as bytes_before
  from (
    select f.retry_at, f.id, coalesce(least(octet_length(f.data), $3::bigint), 0) as bytes
    from outbox f
    where f.attempts > 0
      and f.set_aside_at is null
      and f.processed_at is null
      and f.retry_at <= now()
    order by f.retry_at, f.id
    limit $1::integer
  ) n
) s
cross join lateral (
  select *
  from outbox r
  where r.id = s.id
    and r.attempts > 0
    and r.set_aside_at is null
    and r.processed_at is null
  offset 0
  for update skip locked
) o
where s.bytes_before < $2::bigint
order by s.retry_at, s.id;

-- name: listed_rows
-- The rows $1, unless they are done meanwhile; data of at most $2 bytes. Index: the key. Locks: the rows.
select o.id, least(o.xid, '9223372036854775807'::xid8)::text::bigint, o.event_id,
       left(o.public_id, 300), left(o.tenant_id, 300), left(o.type, 300),
       case when octet_length(o.data) <= $2::bigint then o.data end, left(o.version, 300), o.occurred_at,
       left(o.subject, 300), left(o.traceparent, 300), o.created_at
from outbox o
where o.id = any ($1::bigint[])
  and o.set_aside_at is null
  and o.processed_at is null
order by o.xid, o.id
for update skip locked;

-- name: remove_rows
-- $1 ids: their events are written by the same transaction.
delete from outbox
where id = any ($1::bigint[]);

-- name: mark_processed
-- $1 ids: their events are published.
update outbox
set processed_at = now(),
    set_aside_at = null
where id = any ($1::bigint[])
  and processed_at is null;

-- name: remove_processed
-- Rows that were processed more than $1 seconds ago, $2 at most. Index: outbox_processed, then the key.
delete from outbox
where id = any (array(select o.id
                      from outbox o
                      where o.processed_at < now() - make_interval(secs => $1::bigint)
                      order by o.processed_at
                      limit $2::integer));

-- name: old_rows
-- Rows that were processed more than $1 seconds ago, after ($2 processed_at, $3 id), $4 rows and $5 bytes at most, but at
-- least one: id, processed_at, the row as JSON. Of a row with more than $6 bytes only its id and size. Index:
-- outbox_processed, then the key.
select o.id, o.processed_at,
       case when s.bytes <= $6::bigint then row_to_json(o) else json_build_object('id', o.id, 'bytes', s.bytes) end::text
from (
  select n.processed_at, n.id, n.bytes,
         sum(least(n.bytes, $6::bigint)) over (order by n.processed_at, n.id) - least(n.bytes, $6::bigint) as bytes_before
  from (
    select f.processed_at, f.id,
           coalesce(octet_length(f.data), 0)::bigint + coalesce(octet_length(f.type), 0)
             + coalesce(octet_length(f.tenant_id), 0) + coalesce(octet_length(f.public_id), 0)
             + coalesce(octet_length(f.version), 0) + coalesce(octet_length(f.subject), 0)
             + coalesce(octet_length(f.traceparent), 0) + coalesce(octet_length(f.last_error), 0) as bytes
    from outbox f
    where f.processed_at is not null
      and f.processed_at < now() - make_interval(secs => $1::bigint)
      and (f.processed_at, f.id) > ($2::timestamptz, $3::bigint)
    order by f.processed_at, f.id
    limit $4::integer
  ) n
) s
join outbox o on o.id = s.id
where s.bytes_before < $5::bigint
order by s.processed_at, s.id;

-- name: fail_rows
-- $1 ids, $2 what was wrong with each, $3 attempts after which a row is set aside, $4 seconds to wait after each of
-- them, $5 those of the ids that are set aside at once. Returns the rows. Index: the key; a join would read all of it
-- after a plan made on the empty table.
update outbox o
set attempts = o.attempts + 1,
    last_error = ($2::text[])[array_position($1::bigint[], o.id)],
    retry_at = now() + make_interval(secs => ($4::integer[])[least(o.attempts + 1, cardinality($4::integer[]))]),
    set_aside_at = case when o.attempts + 1 >= $3::integer or o.id = any ($5::bigint[]) then now() end
where o.id = any ($1::bigint[])
  and o.processed_at is null
returning o.id, o.set_aside_at is not null, left(o.tenant_id, 300), left(o.type, 300), o.last_error;
