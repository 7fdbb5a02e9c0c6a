-- The nodes and what they serve.

-- name: list_nodes
-- No parameters. Scans node and bucket_lease, both small.
select
  node.id,
  node.name,
  node.version,
  node.delivers,
  node.alive,
  node.started_at,
  node.heartbeat_at,
  coalesce(array_agg(bucket_lease.bucket order by bucket_lease.bucket)
             filter (where bucket_lease.bucket is not null), '{}')
from node
left join bucket_lease on bucket_lease.owner = node.id
group by node.id
order by node.started_at, node.id

-- name: list_free_buckets
-- No parameters. Scans bucket_lease, which is small.
select coalesce(array_agg(bucket order by bucket), '{}')
from bucket_lease
where owner is null
