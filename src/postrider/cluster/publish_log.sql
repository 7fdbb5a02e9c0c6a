-- How a node finds what others committed.

-- name: read_log
-- Rows that are visible now and were not at the last reading, whatever order their transactions committed in; and
-- the snapshot that the next reading starts from. Index publish_log_by_xid.
-- :xmax and :in_progress are of the last snapshot; the node was handed its own rows. One row at least.
-- not null: snapshot
with snapshot as materialized (
  select pg_current_snapshot() as taken
)
select snapshot.taken::text as snapshot,
       log.first_id,
       log.last_id,
       log.buckets
from snapshot
left join (
  select first_id, last_id, buckets
  from publish_log
  where (xid >= :xmax::text::xid8 or xid = any (:in_progress::text[]::xid8[]))
    and node_id <> :node::uuid
) as log on true

-- name: current_snapshot
-- not null: all
select pg_current_snapshot()::text as snapshot

-- name: wake_others
-- Only wakes: readers poll anyway. On a connection with synchronous_commit off, after the publish committed.
select pg_notify('postrider_publish', '')
