-- Change data capture: the slot, and what the relay keeps about it, in the database where the outbox is. All of it is
-- run by the session that holds the relay's lease.

-- name: capture_view
select s.mode,
       s.capture_bytes_max,
       s.capture_key,
       current_setting('wal_level'),
       n.slot_name,
       r.slot_name is not null,
       coalesce(r.wal_status = 'lost', false),
       r.active_pid,
       coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), r.restart_lsn), 0)::bigint,
       coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), r.confirmed_flush_lsn), 0)::bigint,
       t.slot_made_at is not null,
       t.commit_lsn::text,
       t.message_lsn::text,
       t.state
from outbox_setting s
cross join outbox_slot t
cross join (select 'postrider_' || d.oid as slot_name from pg_database d where d.datname = current_database()) n
left join pg_replication_slots r on r.slot_name = n.slot_name;

-- name: set_capture_state
-- $1 state, $2 why. Returns a row when it is another state than before.
update outbox_slot
set state = $1::text,
    reason = $2::text,
    state_since = case when state = $1::text then state_since else now() end
where state <> $1::text or reason is distinct from $2::text
returning state;

-- name: forget_position
-- Positions in a new slot have nothing to do with those in the one before, which may have been another server's.
update outbox_slot
set commit_lsn = '0/0', message_lsn = '0/0';

-- name: slot_made
update outbox_slot
set slot_made_at = now();

-- name: slot_lost
update outbox_slot
set slot_made_at = null, lost_at = now(), state = 'off', reason = null, state_since = now();

-- name: drop_slot
-- $1 name. Refused (55006) while somebody reads it.
select pg_drop_replication_slot(slot_name)
from pg_replication_slots
where slot_name = $1::text;

-- name: slot_dropped
update outbox_slot
set slot_made_at = null;

-- name: end_reader
-- $1 process: of a relay that had the lease before this one, and lives no longer or stands still.
select pg_terminate_backend($1::integer);

-- name: capture_for
-- emit() writes messages for $1 seconds from now; 0: rows, from now on.
select setval('outbox_capture',
              case when $1::bigint = 0 then 1
                   else ((extract(epoch from clock_timestamp())::bigint - 1600000000 + $1::bigint) << 32) | outbox_place()
              end);

-- name: settled_xid
-- After capture_for(0), in another transaction: whoever still saw that messages are read has a smaller id.
select pg_current_xact_id()::text::bigint;

-- name: is_settled
-- $1 what settled_xid returned: whether all before it have ended, and where the log ends then.
select pg_snapshot_xmin(pg_current_snapshot())::text::bigint > $1::bigint, pg_current_wal_insert_lsn()::text;

-- name: advance_position
-- $1 commit, $2 message: up to here it is done. No row: somebody was further.
update outbox_slot
set commit_lsn = $1::text::pg_lsn, message_lsn = $2::text::pg_lsn
where (commit_lsn, message_lsn) < ($1::text::pg_lsn, $2::text::pg_lsn)
returning singleton;

-- name: store_captured
-- Messages become rows: refused ones ($12 what was wrong with them) with one attempt made and $13 seconds to the next or,
-- if their id is in $14, set aside; others as publish() would have written them. Repeating it changes nothing: the ids
-- come from the table's sequence.
insert into outbox
  (id, event_id, public_id, tenant_id, type, data, version, occurred_at, subject, traceparent, created_at,
   attempts, last_error, retry_at, set_aside_at)
select c.id, c.event_id, c.public_id, c.tenant_id, c.type, c.data, c.version, c.occurred_at, c.subject, c.traceparent,
       c.created_at,
       case when c.error is null then 0 else 1 end,
       c.error,
       case when c.error is not null then now() + make_interval(secs => $13::integer) end,
       case when c.id = any ($14::bigint[]) then now() end
from unnest($1::bigint[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::timestamptz[],
            $9::text[], $10::text[], $11::timestamptz[], $12::text[])
  as c (id, event_id, public_id, tenant_id, type, data, version, occurred_at, subject, traceparent, created_at, error)
order by c.id
on conflict (id) do nothing;

-- name: capture_state
-- For people.
select s.mode,
       t.state,
       t.reason,
       t.state_since,
       t.lost_at,
       s.capture_bytes_max,
       coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), r.confirmed_flush_lsn), 0)::bigint,
       coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), r.restart_lsn), 0)::bigint,
       r.slot_name
from outbox_setting s
cross join outbox_slot t
left join pg_database d on d.datname = current_database()
left join pg_replication_slots r on r.slot_name = 'postrider_' || d.oid;

-- name: set_mode
-- $1 mode
select outbox_set_mode($1::text);

-- name: set_capture_bytes_max
-- $1 bytes
update outbox_setting
set capture_bytes_max = $1::bigint;

-- name: tell_operators
-- In postrider's own database: an operational event about outbox $1, of type $2, with why ($3).
select operational_event($2::text, json_build_object('outbox', $1::text, 'reason', $3::text));
