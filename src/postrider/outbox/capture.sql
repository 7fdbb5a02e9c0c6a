-- Change data capture: the slot, and what the relay keeps about it, in the database where the outbox is. All of it is
-- run by the session that holds the relay's lease.

-- part: behind_bytes
coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), r.confirmed_flush_lsn), 0)::bigint as behind_bytes

-- part: retained_bytes
coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), r.restart_lsn), 0)::bigint as retained_bytes

-- name: capture_view
-- not null: all but reader_pid
select s.mode,
       s.capture_bytes_max,
       s.capture_key,
       current_setting('wal_level') as wal_level,
       n.slot_name,
       r.slot_name is not null as has_slot,
       coalesce(r.wal_status = 'lost', false) as is_slot_lost,
       r.active_pid as reader_pid,
       {{retained_bytes}},
       {{behind_bytes}},
       t.slot_created_at is not null as was_slot_made,
       t.commit_lsn::text as commit_lsn,
       t.message_lsn::text as message_lsn,
       t.state
from outbox_setting s
cross join outbox_slot t
cross join (select 'postrider_' || d.oid as slot_name from pg_database d where d.datname = current_database()) n
left join pg_replication_slots r on r.slot_name = n.slot_name;

-- name: set_capture_state
-- Returns a row if the state or its reason has changed.
update outbox_slot
set state = :state::text,
    reason = :reason?::text,
    state_since = case when state = :state then state_since else now() end
where state <> :state or reason is distinct from :reason
returning state;

-- name: forget_position
-- Positions in a new slot have nothing to do with those in the one before, which may have been another server's.
update outbox_slot
set commit_lsn = '0/0', message_lsn = '0/0';

-- name: slot_created
update outbox_slot
set slot_created_at = now();

-- name: slot_lost
update outbox_slot
set slot_created_at = null, lost_at = now(), state = 'off', reason = null, state_since = now();

-- name: drop_slot
-- Rejected (55006) while it is being read.
select pg_drop_replication_slot(slot_name) as dropped
from pg_replication_slots
where slot_name = :slot::text;

-- name: slot_dropped
update outbox_slot
set slot_created_at = null;

-- name: end_reader
-- The process of a relay that had the lease before this one, and is dead or stalled.
select pg_terminate_backend(:pid::integer) as ended;

-- name: capture_for
-- emit() writes messages for this many seconds from now; 0: rows, from now on.
select setval('outbox_capture',
              case when :seconds::bigint = 0 then 1
                   else ((extract(epoch from clock_timestamp())::bigint - 1600000000 + :seconds) << 32) | outbox_location()
              end) as until;

-- name: settled_xid
-- After capture_for(0), in another transaction: every transaction that still writes messages has a smaller ID.
-- not null: all
select pg_current_xact_id()::text::bigint as xid;

-- name: is_settled
-- Whether all transactions before :xid, from settled_xid, have ended, and where the log ends then.
-- not null: all
select pg_snapshot_xmin(pg_current_snapshot())::text::bigint > :xid::bigint as is_settled,
       pg_current_wal_insert_lsn()::text as end_lsn;

-- name: advance_position
-- Messages up to here are done. No row: another relay has got further.
update outbox_slot
set commit_lsn = :commit::text::pg_lsn, message_lsn = :message::text::pg_lsn
where (commit_lsn, message_lsn) < (:commit::text::pg_lsn, :message::text::pg_lsn)
returning singleton;

-- name: store_captured
-- Messages become rows: rejected ones, which have an error, with one attempt made and :retry_seconds to the next or, if
-- their ID is in :final_ids, set aside; others as publish() would have written them. Repeating it changes nothing: the IDs
-- come from the table's sequence.
insert into outbox
  (id, event_id, public_id, tenant_id, type, data, version, occurred_at, subject, traceparent, created_at,
   attempts, last_error, retry_at, set_aside_at)
select c.id, c.event_id, c.public_id, c.tenant_id, c.type, c.data, c.version, c.occurred_at, c.subject, c.traceparent,
       c.created_at,
       case when c.error is null then 0 else 1 end,
       c.error,
       case when c.error is not null then now() + make_interval(secs => :retry_seconds::integer) end,
       case when c.id = any (:final_ids::bigint[]) then now() end
from unnest(:ids::bigint[], :event_ids::uuid[], :public_ids::text[], :tenants::text[], :types::text[], :data::text[],
            :versions::text[], :occurred_at::timestamptz[], :subjects::text[], :traceparents::text[],
            :created_at::timestamptz[], :errors::text[])
  as c (id, event_id, public_id, tenant_id, type, data, version, occurred_at, subject, traceparent, created_at, error)
order by c.id
on conflict (id) do nothing;

-- name: capture_state
-- For people.
-- not null: all but reason, lost_at, slot_name
select s.mode,
       t.state,
       t.reason,
       t.state_since,
       t.lost_at,
       s.capture_bytes_max,
       {{behind_bytes}},
       {{retained_bytes}},
       r.slot_name
from outbox_setting s
cross join outbox_slot t
left join pg_database d on d.datname = current_database()
left join pg_replication_slots r on r.slot_name = 'postrider_' || d.oid;

-- name: set_mode
select outbox_set_mode(:mode::text) as done;

-- name: set_capture_bytes_max
update outbox_setting
set capture_bytes_max = :bytes::bigint;

-- name: notify_operators
-- In postrider's own database: an operational event about an outbox.
select publish_operational_event(:type::text, json_build_object('outbox', :outbox::text, 'reason', :reason::text)) as event_id;
