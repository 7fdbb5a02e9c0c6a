-- What people ask about an outbox, in the database where it is.

-- name: outbox_state
-- Indexes: outbox_fresh, outbox_failed, outbox_set_aside; the last one is counted, and is small or a reason to look.
-- not null: stuck
select least((select o.created_at
              from outbox o
              where o.attempts = 0 and o.set_aside_at is null and o.processed_at is null
              order by o.xid, o.id
              limit 1),
             (select min(o.created_at)
              from outbox o
              where o.attempts > 0 and o.set_aside_at is null and o.processed_at is null)) as oldest_at,
       (select count(*) from outbox o where o.set_aside_at is not null and o.processed_at is null) as stuck;

-- name: relay_state
select owner, heartbeat_at
from session_lease
where name = 'relay';

-- name: empty_tables
-- Those that should have one row and have none, after a dump without data or a delete by hand.
select string_agg(t.name, ', ' order by t.name) as tables
from (
  select 'outbox_setting' as name where not exists (select from outbox_setting)
  union all
  select 'outbox_slot' where not exists (select from outbox_slot)
  union all
  select 'session_lease' where not exists (select from session_lease where name = 'relay')
) t;

-- name: invalid_events
-- What publish() does with them: `refuse` or `set_aside`. No row: the table was emptied.
-- not null: all
select on_invalid
from outbox_setting;

-- name: set_on_invalid
update outbox_setting
set on_invalid = :on_invalid::text;

-- name: waiting_counts
-- Rows not tried yet, and rows whose last attempt failed; each counted up to :counted_max. Indexes: outbox_fresh,
-- outbox_failed.
-- not null: all
select (select count(*)
        from (select
              from outbox o
              where o.attempts = 0 and o.set_aside_at is null and o.processed_at is null
              limit :counted_max::integer) as fresh) as waiting,
       (select count(*)
        from (select
              from outbox o
              where o.attempts > 0 and o.set_aside_at is null and o.processed_at is null
              limit :counted_max) as failed) as failing;

-- part: row_for_people
-- Its texts may be of any length.
o.id, coalesce(nullif(left(o.public_id, 300), ''), 'evt_' || replace(o.event_id::text, '-', '')) as public_id,
       left(o.tenant_id, 300) as tenant_id, left(o.type, 300) as type, left(o.last_error, 1000) as last_error,
       o.attempts, o.created_at

-- name: failing_rows
-- Those that are tried next. Index: outbox_failed.
-- not null: id
select {{row_for_people}}, o.retry_at
from outbox o
where o.attempts > 0
  and o.set_aside_at is null
  and o.processed_at is null
order by o.retry_at, o.id
limit :rows_max::integer;

-- name: stuck_rows
-- Index: outbox_set_aside.
-- not null: id, set_aside_at
select {{row_for_people}}, o.set_aside_at, o.cut_from_bytes
from outbox o
where o.set_aside_at is not null
  and o.processed_at is null
  and o.id > :after::bigint
order by o.id
limit :rows_max::integer;

-- name: cut_rows
-- Those of :ids whose data was cut, :rows_max at most; no :ids: of all. Index: outbox_set_aside or the key.
-- not null: all
select o.id, o.cut_from_bytes
from outbox o
where o.set_aside_at is not null
  and o.processed_at is null
  and o.cut_from_bytes is not null
  and (:ids?::bigint[] is null or o.id = any (:ids))
order by o.id
limit :rows_max::integer;

-- name: release_rows
-- No :ids: all but rows whose data was cut. If one of :ids was cut, none is released. Index: outbox_set_aside or the key.
update outbox o
set attempts = 1,
    retry_at = now(),
    set_aside_at = null
where o.set_aside_at is not null
  and o.processed_at is null
  and o.cut_from_bytes is null
  and (:ids?::bigint[] is null
       or o.id = any (:ids)
          and not exists (select
                          from outbox c
                          where c.id = any (:ids)
                            and c.set_aside_at is not null
                            and c.processed_at is null
                            and c.cut_from_bytes is not null));

-- name: discard_rows
-- No :ids: all. Index: outbox_set_aside or the key.
delete from outbox o
where o.set_aside_at is not null
  and o.processed_at is null
  and (:ids?::bigint[] is null or o.id = any (:ids));
