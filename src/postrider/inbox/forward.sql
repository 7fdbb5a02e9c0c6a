-- Messages that become events of a tenant.

-- name: forwarding_sources
-- No parameters. Scans source, which is small.
select id, forward_tenant_id, forward_type
from source
where forward_tenant_id is not null

-- name: take_forwards
-- $1 worker, $2 source, $3 how many at most, $4 seconds of lease, $5 bytes of bodies at most. Leases them, in order; see
-- inbox_take.
select f.id, f.partition_key, f.headers, f.body, f.received_at
from inbox_forwards($1::text, $2::text, $3::integer, make_interval(secs => $4::float8), $5::bigint) as f

-- name: finish_forwards
-- $1 worker, $2 ids. Locks the records in order; see inbox_finish.
select inbox_finish('forward', $1::text, $2::uuid[])

-- name: give_back_forwards
-- $1 worker, $2 ids, $3 error, $4 seconds until the next try: none of them has used up an attempt.
select inbox_give_back('forward', $1::text, $2::uuid[], $3::text, make_interval(secs => $4::float8))

-- name: fail_forward
-- $1 worker, $2 id, $3 error, $4 seconds until the next try, or null for the usual pauses.
select inbox_fail('forward', $1::text, $2::uuid, $3::text, make_interval(secs => $4::float8))

-- name: bury_forward
-- $1 ids, $2 error: no later try could be any better.
select inbox_bury('forward', $1::uuid[], $2::text)
