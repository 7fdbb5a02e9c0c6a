-- How a node finds what others committed.

-- name: read_log
-- Rows that are visible now and were not at the last reading, whatever order their transactions committed in; and
-- the snapshot that the next reading starts from. Index publish_log_by_xid.
-- $1 xmax of the last snapshot, $2 transactions in progress then, $3 this node (it was handed its own rows)
with snapshot as materialized (
  select pg_current_snapshot() as taken
)
select snapshot.taken::text,
       log.first_id,
       log.last_id,
       log.buckets
from snapshot
left join (
  select first_id, last_id, buckets
  from publish_log
  where (xid >= $1::text::xid8 or xid = any ($2::text[]::xid8[]))
    and node_id <> $3::uuid
) as log on true

-- name: current_snapshot
select pg_current_snapshot()::text

-- name: wake_others
-- Only wakes: readers poll anyway. On a connection with synchronous_commit off, after the publish committed.
select pg_notify('postrider_publish', '')
