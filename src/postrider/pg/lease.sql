-- Leases of sessions, as rows of session_lease, which only postrider's own role (in another database: the relay's) may
-- access. A lease belongs to a session, identified by its process ID and start, so it is free once that session has ended. A
-- session that is alive but whose heartbeat stands still can be superseded. The epoch rises with each owner, and writes
-- under an old epoch fail.

-- name: take_lease
-- :owner is for people; :stalled_epoch is the epoch of a holder whose heartbeat stands still, or -1. No row: it is held, or the
-- holder's transaction has it locked. Another role's start time is not shown to us: then its process ID decides.
-- not null: all
with free as (
  select l.name
  from session_lease l
  where l.name = :name::text
    and (l.backend_pid is null
         or l.backend_pid = pg_backend_pid()
         or l.epoch = :stalled_epoch::bigint
         or not exists (select
                        from pg_stat_activity a
                        where a.pid = l.backend_pid
                          and (a.backend_start is null or a.backend_start = l.backend_start)))
  for update skip locked
)
update session_lease l
set epoch = l.epoch + 1,
    owner = :owner::text,
    backend_pid = pg_backend_pid(),
    backend_start = (select a.backend_start from pg_stat_activity a where a.pid = pg_backend_pid()),
    heartbeat = l.heartbeat + 1,
    since = now(),
    heartbeat_at = now()
from free
where l.name = free.name
returning l.epoch;

-- name: read_holder
-- Whether the holder makes progress, and whose session it is.
-- not null: all
select l.epoch, l.heartbeat, coalesce(l.backend_pid, 0) as pid, coalesce(a.usename::text, '') as role
from session_lease l
left join pg_stat_activity a on a.pid = l.backend_pid
where l.name = :name::text;

-- name: end_holder
-- Ends the session that holds the lease; rejected (42501) if it is another role's.
select pg_terminate_backend(a.pid) as ended
from session_lease l
join pg_stat_activity a on a.pid = l.backend_pid
                       and (a.backend_start is null or a.backend_start = l.backend_start)
where l.name = :name::text
  and a.pid <> pg_backend_pid();

-- name: beat_lease
-- No row: another session has taken it.
update session_lease
set heartbeat = heartbeat + 1,
    heartbeat_at = now()
where name = :name::text
  and epoch = :epoch::bigint
returning heartbeat;

-- name: release_lease
update session_lease
set owner = null,
    backend_pid = null,
    backend_start = null
where name = :name::text
  and epoch = :epoch::bigint;

-- name: fence
-- Fails with PRL01 unless the lease is still held; keeps it until the transaction ends.
select hold_lease(:name::text, :epoch::bigint) as held;
