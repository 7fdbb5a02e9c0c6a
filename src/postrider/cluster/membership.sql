-- Which node owns which bucket. A node is alive while its heartbeat moves; every observer uses its own clock. All tables
-- here are tiny.

-- name: register_node
-- A new node takes the smallest free slot; a known one (it was marked as dead) returns with its own.
-- Two nodes that want the same slot at once: one gets a unique violation and tries again.
-- not null: all
insert into node (id, slot, name, version, delivers)
select :node::uuid, free.slot, :name::text, :version::text, :delivers::boolean
from (
  select slot
  from generate_series(0, 8191) as slot
  where not exists (select from node where node.slot = slot.slot)
  order by slot
  limit 1
) as free
on conflict (id) do update
  set alive = true,
      heartbeat = node.heartbeat + 1,
      heartbeat_at = now()
returning slot, clock_timestamp() as read_at

-- name: beat
-- Zero rows: this node was declared dead, and its buckets have other owners.
-- not null: all
update node
set heartbeat = heartbeat + 1,
    heartbeat_at = now()
where id = :node::uuid
  and alive
returning clock_timestamp() as read_at

-- name: nodes
-- not null: all
select id, heartbeat, delivers, slot
from node
where alive
order by id

-- name: leases
-- not null: all but owner
select bucket, owner, epoch
from bucket_lease
order by bucket

-- name: declare_dead
-- Declares a node dead whose heartbeat has not moved since it was last read; releases its buckets.
with dead as (
  update node
  set alive = false
  where id = :node::uuid
    and heartbeat = :seen_heartbeat::bigint
    and alive
  returning id, heartbeat_at
)
update bucket_lease
set owner = null,
    since = now(),
    served_until = dead.heartbeat_at
from dead
where bucket_lease.owner = dead.id

-- name: free_orphans
-- Buckets of nodes that left no living row behind.
update bucket_lease
set owner = null,
    since = now(),
    served_until = coalesce((select heartbeat_at from node where node.id = bucket_lease.owner), bucket_lease.since)
where owner is not null
  and not exists (select from node where node.id = bucket_lease.owner and node.alive)

-- name: take
-- Notes for how long no node served the buckets, except for the moments of a release to another node.
-- not null: all
with free as (
  select bucket, served_until
  from bucket_lease
  where owner is null
  order by bucket
  limit :count_max::int
  for update skip locked
),
unserved as (
  insert into unserved_span (bucket, since)
  select bucket, served_until
  from free
  where served_until < now() - interval '1 second'
)
update bucket_lease
set owner = :node::uuid,
    epoch = bucket_lease.epoch + 1,
    since = now(),
    served_until = null
from free
where bucket_lease.bucket = free.bucket
returning bucket_lease.bucket, bucket_lease.epoch

-- name: release
update bucket_lease
set owner = null,
    since = now(),
    served_until = now()
where owner = :node::uuid
  and bucket = :bucket::int
  and epoch = :epoch::bigint

-- name: leave
-- A clean stop: other nodes do not have to wait for the lease to expire.
with gone as (
  update node
  set alive = false
  where id = :node::uuid
  returning id
)
update bucket_lease
set owner = null,
    since = now(),
    served_until = now()
from gone
where bucket_lease.owner = gone.id
