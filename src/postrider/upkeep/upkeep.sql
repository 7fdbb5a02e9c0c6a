-- What keeps the database in shape. Every node with the upkeep role runs these; all are safe to run twice.

-- name: missing_partitions
-- $1 days back, $2 days ahead
select parent, day::text
from unnest(array['event', 'attempt', 'dead_letter', 'inbox']) as parent,
     lateral (
       select (now() at time zone 'UTC')::date + offset_days as day
       from generate_series(-$1::int, $2::int) as offset_days
     ) as days
where to_regclass('postrider.' || parent || '_' || to_char(day, 'YYYYMMDD')) is null
order by day, parent

-- name: make_partition
-- One at a time, each its own transaction, so that locks are short. The session has a lock_timeout.
-- $1 parent, $2 day
select make_partition($1::text, $2::text::date)

-- name: trim_publish_log
-- Readers that were away for longer look at all their buckets again (LogFollower::kAwayMax is well below).
delete from publish_log
where at < now() - interval '15 minutes'

-- name: trim_control_log
delete from control_log
where at < now() - interval '7 days'

-- name: forget_dead_nodes
-- Not at once: a slot is part of ids and must not go to another node while an old one may still wake up.
delete from node
where not alive
  and heartbeat_at < now() - interval '1 hour'

-- name: queue_depth
-- An estimate from the statistics collector: counting would scan. 5,000 sentinels are not deliveries.
select greatest(n_live_tup - 5000, 0)::bigint
from pg_stat_user_tables
where relid = 'postrider.queue'::regclass

-- name: endpoints_by_status
select status, count(*)
from endpoint
where status <> 'deleted'
group by status

-- name: stale_statistics
-- Autovacuum never analyzes a partitioned parent.
select relname
from pg_stat_user_tables
where schemaname = 'postrider'
  and relname in ('event', 'attempt', 'dead_letter', 'inbox')
  and coalesce(last_analyze, '-infinity') < now() - interval '1 day'
