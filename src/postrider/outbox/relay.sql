-- The relay's side of an outbox, in the database where the outbox is.

-- name: current_snapshot
select pg_current_snapshot()::text;

-- name: take_lease
-- The lease is a lock of this session: it ends with the session, whatever becomes of the process.
select pg_try_advisory_lock(8031453476610911596);

-- name: release_lease
select pg_advisory_unlock(8031453476610911596);

-- name: read_beat
select beat
from outbox_relay;

-- name: beat
-- $1 who; the counter is what those who wait judge by.
update outbox_relay
set since = case when backend_pid = pg_backend_pid() and owner = $1::text then since else now() end,
    owner = $1::text,
    backend_pid = pg_backend_pid(),
    beat = beat + 1,
    beat_at = now();

-- name: end_holder
-- Ends the session that holds the lease. For a relay that is stopped or cut off: its connection lives, it does not.
select pg_terminate_backend(l.pid)
from pg_locks l
join pg_database d on d.oid = l.database
where l.locktype = 'advisory'
  and d.datname = current_database()
  and (l.classid::bigint << 32 | l.objid::bigint) = 8031453476610911596
  and l.objsubid = 1
  and l.granted
  and l.pid <> pg_backend_pid();

-- name: fall_asleep
-- From here on publish() notifies. See outbox_write().
select pg_try_advisory_lock(8031453476610911603);

-- name: wake_up
select pg_advisory_unlock(8031453476610911603);

-- name: set_data_bytes_max
-- $1 what publish() accepts at most.
update outbox_setting
set data_bytes_max = $1::integer
where data_bytes_max <> $1::integer;

-- name: late_rows
-- Rows of the transactions $1, which were in progress at the last reading; $2 rows and $3 bytes at most, but at least
-- one. Index: outbox_fresh, then the key. Locks: the rows; those that somebody else has locked are left out.
select o.id, o.xid::text::bigint, o.event_id, o.outside_id, o.tenant_id, o.type, o.data, o.version, o.occurred_at,
       o.subject, o.traceparent, o.created_at
from (
  select n.xid, n.id, sum(octet_length(n.data)) over (order by n.xid, n.id) - octet_length(n.data) as bytes_before
  from (
    select f.xid, f.id, f.data
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
-- Rows behind ($1 xid, $2 id), otherwise as late_rows: $3 rows and $4 bytes at most.
select o.id, o.xid::text::bigint, o.event_id, o.outside_id, o.tenant_id, o.type, o.data, o.version, o.occurred_at,
       o.subject, o.traceparent, o.created_at
from (
  select n.xid, n.id, sum(octet_length(n.data)) over (order by n.xid, n.id) - octet_length(n.data) as bytes_before
  from (
    select f.xid, f.id, f.data
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
-- Rows that were refused before and are due again, $1 at most. Index: outbox_failed. Locks: the rows.
select o.id, o.xid::text::bigint, o.event_id, o.outside_id, o.tenant_id, o.type, o.data, o.version, o.occurred_at,
       o.subject, o.traceparent, o.created_at
from outbox o
where o.attempts > 0
  and o.set_aside_at is null
  and o.processed_at is null
  and o.retry_at <= now()
order by o.retry_at, o.id
limit $1::integer
for update skip locked;

-- name: listed_rows
-- The rows $1, unless they are done meanwhile. Index: the key. Locks: the rows.
select o.id, o.xid::text::bigint, o.event_id, o.outside_id, o.tenant_id, o.type, o.data, o.version, o.occurred_at,
       o.subject, o.traceparent, o.created_at
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
-- Rows that were processed more than $1 seconds ago, behind ($2 processed_at, $3 id), $4 at most: id, processed_at, the row
-- as JSON, the time for a name. Index: outbox_processed.
select o.id, o.processed_at, row_to_json(o)::text, to_char(now() at time zone 'UTC', 'YYYYMMDD"T"HH24MISS')
from outbox o
where o.processed_at is not null
  and o.processed_at < now() - make_interval(secs => $1::bigint)
  and (o.processed_at, o.id) > ($2::timestamptz, $3::bigint)
order by o.processed_at, o.id
limit $4::integer;

-- name: fail_rows
-- $1 ids, $2 what was wrong with each, $3 attempts after which a row is set aside, $4 seconds to wait after each of
-- them. Returns the rows that were set aside now. Index: the key; a join would read all of it after a plan made on
-- the empty table.
update outbox o
set attempts = o.attempts + 1,
    last_error = ($2::text[])[array_position($1::bigint[], o.id)],
    retry_at = now() + make_interval(secs => ($4::integer[])[least(o.attempts + 1, cardinality($4::integer[]))]),
    set_aside_at = case when o.attempts + 1 >= $3::integer then now() end
where o.id = any ($1::bigint[])
  and o.processed_at is null
returning o.id, o.set_aside_at is not null, o.tenant_id, o.type, o.last_error;
