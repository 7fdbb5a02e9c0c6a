-- What `postrider doctor` asks the database. Every answer is small.

-- name: server
-- Whether there is a schema, the server's version and its clock.
select to_regclass('postrider.migration') is not null,
       current_setting('server_version_num')::integer,
       clock_timestamp(),
       pg_is_in_recovery()

-- name: schema_version
select coalesce(max(version), 0)
from migration

-- name: partitions
-- Days of the next three without a partition; the oldest day that is still there; whether one waits to be detached.
select (select count(*)
        from unnest(array['event', 'attempt', 'dead_letter']) as parent, generate_series(0, 3) as day
        where to_regclass('postrider.' || parent || '_'
                          || to_char((now() at time zone 'UTC')::date + day, 'YYYYMMDD')) is null),
       (select min(right(relname, 8)) from pg_class
        where relnamespace = 'postrider'::regnamespace and relkind = 'r' and relname ~ '^event_[0-9]{8}$'),
       (select count(*) from pg_inherits where inhdetachpending)

-- name: leases
-- Buckets without an owner, with an owner that is not alive, and nodes that deliver.
select (select count(*) from bucket_lease where owner is null),
       (select count(*) from bucket_lease l where owner is not null
          and not exists (select from node n where n.id = l.owner and n.alive)),
       (select count(*) from node where alive and delivers),
       (select count(*) from node where alive and heartbeat_at < now() - interval '1 minute')

-- name: tenants_without_contact
-- Tenants without a confirmed contact: their number, and the first 20 by ID.
select count(*), coalesce((array_agg(id order by id))[1:20], '{}')
from tenant
where status <> 'deleted'
  and id <> 'postrider'
  and contacts_to_tell(id) is null

-- name: capture
-- Change data capture of the own outbox: wanted, its state, log that its slot retains, the limit, when a slot was lost,
-- whether the server itself limits what slots retain, its wal_level.
select s.mode = 'cdc',
       t.state,
       t.reason,
       coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), r.restart_lsn), 0)::bigint,
       s.capture_bytes_max,
       t.lost_at,
       current_setting('max_slot_wal_keep_size') <> '-1',
       current_setting('wal_level')
from outbox_setting s
cross join outbox_slot t
left join pg_database d on d.datname = current_database()
left join pg_replication_slots r on r.slot_name = 'postrider_' || d.oid
