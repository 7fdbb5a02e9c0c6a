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
-- $1 worker, $2 ids. Locks the records; see inbox_finish. A message whose record a consumer's open transaction holds is
-- given back: it is forwarded again under the same id, which makes nothing new, and finished then.
with free as materialized (
  select inbox_lock_free($2::uuid[]) as ids
)
select inbox_finish('forward', $1::text, free.ids),
       inbox_give_back('forward', $1::text,
                       array(select i from unnest($2::uuid[]) as i where i <> all (free.ids)),
                       'an open transaction of a consumer holds the message', interval '1 second')
from free

-- name: give_back_forwards
-- $1 worker, $2 ids, $3 error, $4 seconds until the next try: none of them has used up an attempt.
select inbox_give_back('forward', $1::text, $2::uuid[], $3::text, make_interval(secs => $4::float8))

-- name: fail_forward
-- $1 worker, $2 id, $3 error, $4 seconds until the next try, or null for the usual pauses. As in finish_forwards, one that
-- is held is given back.
select case
         when cardinality(inbox_lock_free(array[$2::uuid])) > 0
           then inbox_fail('forward', $1::text, $2::uuid, $3::text, make_interval(secs => $4::float8))
         else inbox_give_back('forward', $1::text, array[$2::uuid], $3::text, interval '1 second') > 0
       end

-- name: bury_forward
-- $1 ids, $2 error: no later try could be any better. One that is held is tried and buried again when its lease has ended.
select inbox_bury('forward', inbox_lock_free($1::uuid[]), $2::text)
