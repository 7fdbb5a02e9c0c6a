-- The queries of `postrider doctor`. Every result is small.

-- name: server
-- not null: all
select to_regclass('postrider.migration') is not null as has_schema,
       current_setting('server_version_num')::integer as version,
       clock_timestamp() as clock,
       pg_is_in_recovery() as is_standby

-- name: schema_version
-- not null: all
select coalesce(max(version), 0) as version
from migration

-- name: partitions
-- Days of the next three without a partition; the oldest day that is still there; whether one waits to be detached.
-- not null: all but oldest_day
select (select count(*)
        from unnest(array['event', 'attempt', 'dead_letter']) as parent, generate_series(0, 3) as day
        where to_regclass('postrider.' || parent || '_'
                          || to_char((now() at time zone 'UTC')::date + day, 'YYYYMMDD')) is null) as missing,
       (select min(right(relname, 8)) from pg_class
        where relnamespace = 'postrider'::regnamespace and relkind = 'r' and relname ~ '^event_[0-9]{8}$') as oldest_day,
       (select count(*) from pg_inherits where inhdetachpending) as detaching

-- name: leases
-- Buckets without an owner, with an owner that is not alive, and nodes that deliver or send no heartbeat.
-- not null: all
select (select count(*) from bucket_lease where owner is null) as free_buckets,
       (select count(*) from bucket_lease l where owner is not null
          and not exists (select from node n where n.id = l.owner and n.alive)) as orphaned_buckets,
       (select count(*) from node where alive and delivers) as delivering_nodes,
       (select count(*) from node where alive and heartbeat_at < now() - interval '1 minute') as silent_nodes

-- name: capture
-- Change data capture of the own outbox. No row: there is no outbox here.
-- not null: is_wanted, state, retained_bytes, has_server_limit, wal_level
select s.mode = 'cdc' as is_wanted,
       t.state,
       t.reason,
       coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), r.restart_lsn), 0)::bigint as retained_bytes,
       t.lost_at,
       current_setting('max_slot_wal_keep_size') <> '-1' as has_server_limit,
       current_setting('wal_level') as wal_level
from outbox_setting s
cross join outbox_slot t
left join pg_database d on d.datname = current_database()
left join pg_replication_slots r on r.slot_name = 'postrider_' || d.oid
