-- Which node serves which bucket. A node is alive while its heartbeat moves; every observer judges that by its own
-- clock. All tables here are tiny.

-- name: register_node
-- A new node takes the smallest free slot; a known one (it was thought dead) comes back to life with its own.
-- Two nodes that want the same slot at once: one gets a unique violation and tries again.
-- $1 node, $2 name, $3 version, $4 whether it delivers
insert into node (id, slot, name, version, delivers)
select $1::uuid, free.slot, $2::text, $3::text, $4::boolean
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
returning slot, clock_timestamp()

-- name: beat
-- Zero rows: this node was declared dead, and its buckets are somebody else's.
-- $1 node
update node
set heartbeat = heartbeat + 1,
    heartbeat_at = now()
where id = $1::uuid
  and alive
returning clock_timestamp()

-- name: nodes
select id, heartbeat, delivers, slot
from node
where alive
order by id

-- name: leases
select bucket, owner, epoch
from bucket_lease
order by bucket

-- name: bury
-- Declares a node dead whose heartbeat has not moved since it was seen; frees its buckets.
-- $1 node, $2 the heartbeat that was seen
with dead as (
  update node
  set alive = false
  where id = $1::uuid
    and heartbeat = $2::bigint
    and alive
  returning id
)
update bucket_lease
set owner = null,
    since = now()
from dead
where bucket_lease.owner = dead.id

-- name: free_orphans
-- Buckets of nodes that left no living row behind.
update bucket_lease
set owner = null,
    since = now()
where owner is not null
  and not exists (select from node where node.id = bucket_lease.owner and node.alive)

-- name: take
-- $1 node, $2 how many at most
update bucket_lease
set owner = $1::uuid,
    epoch = bucket_lease.epoch + 1,
    since = now()
from (
  select bucket
  from bucket_lease
  where owner is null
  order by bucket
  limit $2::int
  for update skip locked
) as free
where bucket_lease.bucket = free.bucket
returning bucket_lease.bucket, bucket_lease.epoch

-- name: release
-- $1 node, $2 bucket, $3 epoch
update bucket_lease
set owner = null,
    since = now()
where owner = $1::uuid
  and bucket = $2::int
  and epoch = $3::bigint

-- name: leave
-- A clean stop: nobody has to wait for the lease to run out.
-- $1 node
with gone as (
  update node
  set alive = false
  where id = $1::uuid
  returning id
)
update bucket_lease
set owner = null,
    since = now()
from gone
where bucket_lease.owner = gone.id
