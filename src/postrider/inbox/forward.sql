-- Messages that become events of a tenant.

-- name: forwarding_sources
-- Scans source, which is small.
-- not null: all
select id, forward_tenant_id, forward_type
from source
where forward_tenant_id is not null

-- name: take_forwards
-- Leases messages, in order; see inbox_take.
-- not null: id, headers, body
select f.id, f.partition_key, f.headers, f.body
from inbox_forwards(:worker::text, :source::text, :rows::integer, make_interval(secs => :lease_seconds::float8),
                    :bytes_max::bigint) as f

-- name: finish_forwards
-- Locks the messages; see inbox_finish. A message that is locked by a consumer's open transaction is returned: it is
-- published again under the same ID, which creates nothing new, and finished then.
with free as materialized (
  select inbox_lock_free(:ids::uuid[]) as ids
)
select inbox_finish('forward', :worker::text, free.ids) as finished,
       inbox_return('forward', :worker,
                       array(select i from unnest(:ids) as i where i <> all (free.ids)),
                       'an open transaction of a consumer holds the message', interval '1 second') as given_back
from free

-- name: give_back_forwards
-- Does not count as an attempt.
select inbox_return('forward', :worker::text, :ids::uuid[], :error::text,
                       make_interval(secs => :pause_seconds::float8)) as given_back

-- name: fail_forward
-- The next attempt follows after the usual pause. As in finish_forwards, a message that is locked is returned to the queue.
select case
         when cardinality(inbox_lock_free(array[:id::uuid])) > 0
           then inbox_fail('forward', :worker::text, :id, :error::text, null)
         else inbox_return('forward', :worker, array[:id], :error, interval '1 second') > 0
       end as is_done

-- name: fail_forward_permanently
-- For an error that no later attempt can avoid. A message that is locked is attempted again when its lease has expired.
select inbox_mark_dead('forward', inbox_lock_free(:ids::uuid[]), :error::text) as buried
