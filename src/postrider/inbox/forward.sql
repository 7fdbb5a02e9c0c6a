-- Messages that become events of a tenant.

-- name: forwarding_sources
-- No parameters. Scans source, which is small.
select id, forward_tenant_id, forward_type
from source
where forward_tenant_id is not null

-- name: take_forwards
-- $1 worker, $2 source, $3 how many at most, $4 seconds of lease, $5 bytes of bodies at most. Leases them, in order; see
-- inbox_take. Each message is looked up by its key, in its own day.
select t.id, m.partition_key, m.headers::text, m.body, m.received_at
from inbox_take('forward', $1::text, $2::text, $3::integer, make_interval(secs => $4::float8), $5::bigint) as t
cross join lateral (
  select i.partition_key, i.headers, i.body, i.received_at
  from inbox i
  where i.id = t.id
  offset 0
) as m
cross join lateral (
  select w.position
  from inbox_queue w
  where w.id = t.id
    and w.work = 'forward'
  offset 0
) as q
order by q.position

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
