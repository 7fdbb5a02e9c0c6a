-- Leases of sessions, as rows of session_lease, which only postrider's own role (in another database: the relay's) may
-- touch. A lease belongs to a session, named by its process id and start, so it is free once that session has ended; a
-- session that lives but whose beat stands still can be superseded. The epoch counts the holders and fences their writes.

-- name: take_lease
-- $1 name, $2 owner, for people, $3 the epoch of a holder that was found to stand still, or -1. No row: it is held, or the
-- holder's transaction has it locked. Another role's start time is not shown to us: then its process id decides.
with free as (
  select l.name
  from session_lease l
  where l.name = $1::text
    and (l.backend_pid is null
         or l.backend_pid = pg_backend_pid()
         or l.epoch = $3::bigint
         or not exists (select
                        from pg_stat_activity a
                        where a.pid = l.backend_pid
                          and (a.backend_start is null or a.backend_start = l.backend_start)))
  for update skip locked
)
update session_lease l
set epoch = l.epoch + 1,
    owner = $2::text,
    backend_pid = pg_backend_pid(),
    backend_start = (select a.backend_start from pg_stat_activity a where a.pid = pg_backend_pid()),
    beat = l.beat + 1,
    since = now(),
    beat_at = now()
from free
where l.name = free.name
returning l.epoch;

-- name: read_holder
-- $1 name: what those who wait judge by, and whose session it is.
select l.epoch, l.beat, coalesce(l.backend_pid, 0), coalesce(a.usename::text, '')
from session_lease l
left join pg_stat_activity a on a.pid = l.backend_pid
where l.name = $1::text;

-- name: end_holder
-- $1 name. Ends the session that holds the lease; refused (42501) when it is another role's.
select pg_terminate_backend(a.pid)
from session_lease l
join pg_stat_activity a on a.pid = l.backend_pid
                       and (a.backend_start is null or a.backend_start = l.backend_start)
where l.name = $1::text
  and a.pid <> pg_backend_pid();

-- name: beat_lease
-- $1 name, $2 epoch. No row: another session has taken it.
update session_lease
set beat = beat + 1,
    beat_at = now()
where name = $1::text
  and epoch = $2::bigint
returning beat;

-- name: release_lease
-- $1 name, $2 epoch.
update session_lease
set owner = null,
    backend_pid = null,
    backend_start = null
where name = $1::text
  and epoch = $2::bigint;

-- name: fence
-- $1 name, $2 epoch. Fails with PRL01 unless the lease is still held; keeps it until the transaction ends.
select hold_lease($1::text, $2::bigint);
