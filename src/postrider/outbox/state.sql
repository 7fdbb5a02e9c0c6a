-- What people ask about an outbox, in the database where it is.

-- name: outbox_state
-- Indexes: outbox_fresh, outbox_failed, outbox_set_aside; the last one is counted, and is small or a reason to look.
select least((select o.created_at
              from outbox o
              where o.attempts = 0 and o.processed_at is null
              order by o.xid, o.id
              limit 1),
             (select min(o.created_at)
              from outbox o
              where o.attempts > 0 and o.set_aside_at is null and o.processed_at is null)),
       (select count(*) from outbox o where o.set_aside_at is not null and o.processed_at is null);

-- name: relay_state
select owner, beat_at
from session_lease
where name = 'relay';

-- name: empty_tables
-- Those that should have one row and have none, after a dump without data or a delete by hand.
select string_agg(t.name, ', ' order by t.name)
from (
  select 'outbox_setting' as name where not exists (select from outbox_setting)
  union all
  select 'outbox_slot' where not exists (select from outbox_slot)
  union all
  select 'session_lease' where not exists (select from session_lease where name = 'relay')
) t;

-- name: waiting_counts
-- Rows not tried yet, and rows whose last attempt failed; each counted up to $1. Indexes: outbox_fresh, outbox_failed.
select (select count(*)
        from (select
              from outbox o
              where o.attempts = 0 and o.processed_at is null
              limit $1::integer) as fresh),
       (select count(*)
        from (select
              from outbox o
              where o.attempts > 0 and o.set_aside_at is null and o.processed_at is null
              limit $1::integer) as failed);

-- name: failing_rows
-- Those that are tried next, $1 at most. Index: outbox_failed. Its texts may be of any length.
select o.id, coalesce(left(o.public_id, 300), 'evt_' || replace(o.event_id::text, '-', '')), left(o.tenant_id, 300),
       left(o.type, 300), left(o.last_error, 1000), o.attempts, o.created_at, o.retry_at
from outbox o
where o.attempts > 0
  and o.set_aside_at is null
  and o.processed_at is null
order by o.retry_at, o.id
limit $1::integer;

-- name: stuck_rows
-- After row $1, $2 at most. Index: outbox_set_aside. Its texts may be of any length.
select o.id, coalesce(left(o.public_id, 300), 'evt_' || replace(o.event_id::text, '-', '')), left(o.tenant_id, 300),
       left(o.type, 300), left(o.last_error, 1000), o.attempts, o.created_at, o.set_aside_at
from outbox o
where o.set_aside_at is not null
  and o.processed_at is null
  and o.id > $1::bigint
order by o.id
limit $2::integer;

-- name: release_rows
-- $1 ids; null: all. Index: outbox_set_aside or the key.
update outbox o
set attempts = 1,
    retry_at = now(),
    set_aside_at = null
where o.set_aside_at is not null
  and o.processed_at is null
  and ($1::bigint[] is null or o.id = any ($1::bigint[]));

-- name: discard_rows
-- $1 ids; null: all. Index: outbox_set_aside or the key.
delete from outbox o
where o.set_aside_at is not null
  and o.processed_at is null
  and ($1::bigint[] is null or o.id = any ($1::bigint[]));
