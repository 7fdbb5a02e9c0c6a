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
from outbox_relay;

-- name: stuck_rows
-- Behind row $1, $2 at most. Index: outbox_set_aside.
select o.id, coalesce(o.outside_id, 'evt_' || replace(o.event_id::text, '-', '')), o.tenant_id, o.type, o.last_error,
       o.attempts, o.created_at, o.set_aside_at
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
