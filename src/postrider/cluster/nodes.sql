-- The nodes and the buckets that they own.

-- name: list_nodes
-- Scans node and bucket_lease, both small.
-- not null: all
select
  node.id,
  node.name,
  node.version,
  node.delivers,
  node.alive,
  node.started_at,
  node.heartbeat_at,
  coalesce(array_agg(bucket_lease.bucket order by bucket_lease.bucket)
             filter (where bucket_lease.bucket is not null), '{}') as buckets
from node
left join bucket_lease on bucket_lease.owner = node.id
group by node.id
order by node.started_at, node.id

-- name: list_free_buckets
-- Scans bucket_lease, which is small.
-- not null: all
select coalesce(array_agg(bucket order by bucket), '{}') as buckets
from bucket_lease
where owner is null
