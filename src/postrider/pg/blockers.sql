-- Open transactions that postrider waits for. Both statements read the lock table and the list of sessions, which show a
-- session's process ID and role to every role.

-- name: lock_holders
-- Other sessions that hold locks on what is in the schema postrider, other roles' first.
-- not null: all
select l.pid, coalesce(a.usename::text, '') as role, string_agg(distinct c.relname, ', ' order by c.relname) as tables
from pg_locks l
join pg_class c on c.oid = l.relation
left join pg_stat_activity a on a.pid = l.pid
where l.database = (select d.oid from pg_database d where d.datname = current_database())
  and c.relnamespace = to_regnamespace('postrider')
  and c.relkind in ('r', 'p', 'S', 'v')
  and l.granted
  and l.pid <> pg_backend_pid()
group by l.pid, a.usename
order by a.usename is not distinct from current_user, l.pid
limit 5;

-- name: blocked_sessions
-- Sessions of this role in this database that wait for a lock, and each session that they wait for.
-- not null: all
select w.pid, w.application_name, b.pid as holder_pid, coalesce(h.usename::text, '') as holder_role,
       coalesce(h.application_name, '') as holder_application
from pg_stat_activity w
cross join lateral unnest(pg_blocking_pids(w.pid)) as b (pid)
left join pg_stat_activity h on h.pid = b.pid
where w.datname = current_database()
  and w.usename = current_user
  and w.wait_event_type = 'Lock'
order by w.pid, b.pid
limit 100;
