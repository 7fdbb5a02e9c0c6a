-- What an attempt came to. Every statement takes its arrays sorted by (bucket, id), so that two settles never
-- deadlock, and changes only rows whose attempt count is still the one that was sent and whose bucket is still
-- leased to this node in the same epoch: whoever lost the bucket meanwhile changes nothing. Each returns the ids
-- that it did settle. Those that end a delivery of a replay count it, those that make dead letters count them by
-- minute for the operators; without replays the former costs a look at one column.
--
-- The leases are read once into an array by bucket (0, 1, …), not joined per row; what the attempt row repeats of
-- the queue row comes from there, not over the wire.
--
-- Index: the primary key of queue; plans are made with the sentinel rows in place, see the migration.

-- name: delivered
-- $1 node, $2 buckets, $3 delivery ids, $4 epochs, $5 attempts before, $6 status codes, $7 started, $8 to $12 phases
-- in µs (lookup, connect, tls, first byte, total), $13 previews, $14 addresses
with lease as materialized (
  select array(select case when owner = $1::uuid then epoch else -1 end from bucket_lease order by bucket) as epochs
),
gone as (
  delete from queue
  using unnest($2::int[], $3::uuid[], $4::bigint[], $5::int[], $6::int[], $7::timestamptz[], $8::int[], $9::int[],
               $10::int[], $11::int[], $12::int[], $13::text[], $14::text[])
          as result (bucket, id, epoch, attempts, status_code, started_at, dns_us, connect_us, tls_us, first_byte_us,
                     total_us, preview, address)
  where queue.bucket = result.bucket
    and queue.id = result.id
    and queue.attempts = result.attempts
    and result.epoch = (select epochs from lease)[result.bucket + 1]
  returning queue.*, result.status_code, result.started_at, result.dns_us, result.connect_us, result.tls_us,
            result.first_byte_us, result.total_us, result.preview, result.address
),
counted as (
  insert into replay_progress as p (replay_id, bucket, delivered)
  select replay_id, bucket, count(*)
  from gone
  where replay_id is not null
  group by replay_id, bucket
  order by replay_id, bucket
  on conflict (replay_id, bucket) do update
    set delivered = p.delivered + excluded.delivered
)
insert into attempt (delivery_id, attempt, bucket, endpoint_id, event_id, tenant_id, outcome, status_code, started_at,
                     dns_us, connect_us, tls_us, first_byte_us, total_us, preview, address, node_id, created_at,
                     replay_id)
select id, attempts + 1, bucket, endpoint_id, event_id, tenant_id, 'delivered', status_code, started_at, dns_us,
       connect_us, tls_us, first_byte_us, total_us, preview, address, $1::uuid, created_at, replay_id
from gone
returning delivery_id

-- name: deferred
-- As `delivered`, and: $15 errors, $16 error details, $17 when it is due again, $18 whether it joins the retries
-- (a strict endpoint's rows do not: there the position rules)
with lease as materialized (
  select array(select case when owner = $1::uuid then epoch else -1 end from bucket_lease order by bucket) as epochs
),
later as (
  update queue
  set attempts = queue.attempts + 1,
      due_at = result.due_at,
      retry = result.retry,
      position = case when result.retry then 0 else queue.position end
  from unnest($2::int[], $3::uuid[], $4::bigint[], $5::int[], $6::int[], $7::timestamptz[], $8::int[], $9::int[],
              $10::int[], $11::int[], $12::int[], $13::text[], $14::text[], $15::text[], $16::text[],
              $17::timestamptz[], $18::boolean[])
         as result (bucket, id, epoch, attempts, status_code, started_at, dns_us, connect_us, tls_us, first_byte_us,
                    total_us, preview, address, error, error_detail, due_at, retry)
  where queue.bucket = result.bucket
    and queue.id = result.id
    and queue.attempts = result.attempts
    and result.epoch = (select epochs from lease)[result.bucket + 1]
  returning queue.*, result.status_code, result.started_at, result.dns_us, result.connect_us, result.tls_us,
            result.first_byte_us, result.total_us, result.preview, result.address, result.error, result.error_detail
)
insert into attempt (delivery_id, attempt, bucket, endpoint_id, event_id, tenant_id, outcome, status_code, started_at,
                     dns_us, connect_us, tls_us, first_byte_us, total_us, preview, address, node_id, created_at,
                     replay_id, error, error_detail, next_attempt_at)
select id, attempts, bucket, endpoint_id, event_id, tenant_id, 'retrying', status_code, started_at, dns_us,
       connect_us, tls_us, first_byte_us, total_us, preview, address, $1::uuid, created_at, replay_id, error,
       error_detail, due_at
from later
returning delivery_id

-- name: dead
-- As `delivered`, and: $15 errors, $16 error details, $17 causes, $18 whether there was an exchange (an expired
-- delivery may end without one; its note has attempt 0)
with lease as materialized (
  select array(select case when owner = $1::uuid then epoch else -1 end from bucket_lease order by bucket) as epochs
),
gone as (
  delete from queue
  using unnest($2::int[], $3::uuid[], $4::bigint[], $5::int[], $6::int[], $7::timestamptz[], $8::int[], $9::int[],
               $10::int[], $11::int[], $12::int[], $13::text[], $14::text[], $15::text[], $16::text[], $17::text[],
               $18::boolean[])
          as result (bucket, id, epoch, attempts, status_code, started_at, dns_us, connect_us, tls_us, first_byte_us,
                     total_us, preview, address, error, error_detail, cause, exchanged)
  where queue.bucket = result.bucket
    and queue.id = result.id
    and queue.attempts = result.attempts
    and result.epoch = (select epochs from lease)[result.bucket + 1]
  returning queue.*, result.status_code, result.started_at, result.dns_us, result.connect_us, result.tls_us,
            result.first_byte_us, result.total_us, result.preview, result.address, result.error, result.error_detail,
            result.cause, result.exchanged
),
letter as (
  insert into dead_letter (delivery_id, bucket, endpoint_id, event_id, tenant_id, cause, attempts, status_code, error,
                           error_detail, created_at)
  select id, bucket, endpoint_id, event_id, tenant_id, cause, attempts + exchanged::int, status_code, error,
         error_detail, created_at
  from gone
),
counted as (
  insert into replay_progress as p (replay_id, bucket, failed)
  select replay_id, bucket, count(*)
  from gone
  where replay_id is not null
  group by replay_id, bucket
  order by replay_id, bucket
  on conflict (replay_id, bucket) do update
    set failed = p.failed + excluded.failed
),
told as (
  insert into dead_letter_minute as m (endpoint_id, minute, cause, letters)
  select endpoint_id, date_trunc('minute', now()), cause, count(*)
  from gone
  group by endpoint_id, cause
  order by endpoint_id, cause
  on conflict (endpoint_id, minute, cause) do update
    set letters = m.letters + excluded.letters
)
insert into attempt (delivery_id, attempt, bucket, endpoint_id, event_id, tenant_id, outcome, status_code, started_at,
                     dns_us, connect_us, tls_us, first_byte_us, total_us, preview, address, node_id, created_at,
                     replay_id, error, error_detail)
select id, case when exchanged then attempts + 1 else 0 end, bucket, endpoint_id, event_id, tenant_id, 'dead_letter',
       status_code, started_at, dns_us, connect_us, tls_us, first_byte_us, total_us, preview, address, $1::uuid,
       created_at, replay_id, error, error_detail
from gone
returning delivery_id

-- name: sweep_disabled
-- Rows of a disabled endpoint become dead letters, some at a time, in the order of queue_lane, so that each time
-- only these are read.
-- $1 node, $2 bucket, $3 endpoint, $4 epoch, $5 how many at most
with swept as (
  select bucket, id
  from queue
  where bucket = $2::int
    and endpoint_id = $3::uuid
  order by bucket, endpoint_id, retry, position, due_at, id
  limit $5::int
),
gone as (
  delete from queue
  using swept, bucket_lease as lease
  where queue.bucket = swept.bucket
    and queue.id = swept.id
    and lease.bucket = queue.bucket
    and lease.owner = $1::uuid
    and lease.epoch = $4::bigint
  returning queue.*
),
letter as (
  insert into dead_letter (delivery_id, bucket, endpoint_id, event_id, tenant_id, cause, attempts, error_detail,
                           created_at)
  select id, bucket, endpoint_id, event_id, tenant_id, 'endpoint_disabled', attempts, 'the endpoint is disabled',
         created_at
  from gone
),
counted as (
  insert into replay_progress as p (replay_id, bucket, failed)
  select replay_id, bucket, count(*)
  from gone
  where replay_id is not null
  group by replay_id, bucket
  order by replay_id, bucket
  on conflict (replay_id, bucket) do update
    set failed = p.failed + excluded.failed
),
told as (
  insert into dead_letter_minute as m (endpoint_id, minute, cause, letters)
  select endpoint_id, date_trunc('minute', now()), 'endpoint_disabled', count(*)
  from gone
  group by endpoint_id
  order by endpoint_id
  on conflict (endpoint_id, minute, cause) do update
    set letters = m.letters + excluded.letters
)
insert into attempt (delivery_id, attempt, bucket, endpoint_id, event_id, tenant_id, outcome, started_at, total_us,
                     node_id, created_at, replay_id, error_detail)
select id, 0, bucket, endpoint_id, event_id, tenant_id, 'dead_letter', now(), 0, $1::uuid, created_at, replay_id,
       'the endpoint is disabled'
from gone
returning delivery_id

-- name: sweep_canceled
-- Rows of a deleted endpoint are canceled, some at a time, in the order of queue_lane.
-- $1 node, $2 bucket, $3 endpoint, $4 epoch, $5 how many at most
with swept as (
  select bucket, id
  from queue
  where bucket = $2::int
    and endpoint_id = $3::uuid
  order by bucket, endpoint_id, retry, position, due_at, id
  limit $5::int
),
gone as (
  delete from queue
  using swept, bucket_lease as lease
  where queue.bucket = swept.bucket
    and queue.id = swept.id
    and lease.bucket = queue.bucket
    and lease.owner = $1::uuid
    and lease.epoch = $4::bigint
  returning queue.*
),
counted as (
  insert into replay_progress as p (replay_id, bucket, canceled)
  select replay_id, bucket, count(*)
  from gone
  where replay_id is not null
  group by replay_id, bucket
  order by replay_id, bucket
  on conflict (replay_id, bucket) do update
    set canceled = p.canceled + excluded.canceled
)
insert into attempt (delivery_id, attempt, bucket, endpoint_id, event_id, tenant_id, outcome, started_at, total_us,
                     node_id, created_at, replay_id, error_detail)
select id, 0, bucket, endpoint_id, event_id, tenant_id, 'canceled', now(), 0, $1::uuid, created_at, replay_id,
       'the endpoint was deleted'
from gone
returning delivery_id

-- name: sweep_older
-- Rows of an endpoint up to a time are canceled, some at a time, in the order of queue_lane. It reads the newer rows
-- of the lane, too.
-- $1 node, $2 bucket, $3 endpoint, $4 epoch, $5 how many at most, $6 the time
with swept as (
  select bucket, id
  from queue
  where bucket = $2::int
    and endpoint_id = $3::uuid
    and created_at <= $6::timestamptz
  order by bucket, endpoint_id, retry, position, due_at, id
  limit $5::int
),
gone as (
  delete from queue
  using swept, bucket_lease as lease
  where queue.bucket = swept.bucket
    and queue.id = swept.id
    and lease.bucket = queue.bucket
    and lease.owner = $1::uuid
    and lease.epoch = $4::bigint
  returning queue.*
),
counted as (
  insert into replay_progress as p (replay_id, bucket, canceled)
  select replay_id, bucket, count(*)
  from gone
  where replay_id is not null
  group by replay_id, bucket
  order by replay_id, bucket
  on conflict (replay_id, bucket) do update
    set canceled = p.canceled + excluded.canceled
)
insert into attempt (delivery_id, attempt, bucket, endpoint_id, event_id, tenant_id, outcome, started_at, total_us,
                     node_id, created_at, replay_id, error_detail)
select id, 0, bucket, endpoint_id, event_id, tenant_id, 'canceled', now(), 0, $1::uuid, created_at, replay_id,
       'canceled with all that was pending for the endpoint'
from gone
returning delivery_id

-- name: end_clearing
-- Nothing that old is left: the endpoint goes on. Guarded by the lease, because without it the sweep found nothing.
-- $1 node, $2 bucket, $3 endpoint, $4 epoch, $5 the time
with cleared as (
  update endpoint
  set cancel_before = null
  where id = $3::uuid
    and cancel_before = $5::timestamptz
    and exists (
      select
      from bucket_lease
      where bucket = $2::int
        and owner = $1::uuid
        and epoch = $4::bigint
    )
    and not exists (
      select
      from queue
      where queue.bucket = $2::int
        and queue.endpoint_id = $3::uuid
        and queue.created_at <= $5::timestamptz
    )
  returning id, tenant_id
)
select note_change('endpoint', tenant_id, id)
from cleared

-- name: disable_endpoint
-- An answer said that the endpoint is gone. Zero rows: somebody was first.
-- $1 endpoint, $2 reason
with disabled as (
  update endpoint
  set status = 'disabled',
      status_by = 'postrider',
      status_reason = $2::text,
      status_since = now(),
      revision = revision + 1,
      updated_at = now()
  where id = $1::uuid
    and status in ('active', 'paused')
  returning id, tenant_id, outside_id, status, status_reason
)
select write_audit('system', 'system', 'endpoint.disable', tenant_id, outside_id,
                   after => jsonb_build_object('status', status, 'status_reason', status_reason)),
       note_change('endpoint', tenant_id, id)
from disabled

-- name: pause_endpoint
-- Too many rejections in a row for an endpoint that wants to be paused then. Zero rows: somebody was first.
-- $1 endpoint, $2 reason
with paused as (
  update endpoint
  set status = 'paused',
      status_by = 'postrider',
      status_reason = $2::text,
      status_since = now(),
      revision = revision + 1,
      updated_at = now()
  where id = $1::uuid
    and status = 'active'
  returning id, tenant_id, outside_id, status, status_reason
),
span as (
  insert into pause_span (tenant_id, endpoint_id)
  select tenant_id, id
  from paused
)
select write_audit('system', 'system', 'endpoint.pause', tenant_id, outside_id,
                   after => jsonb_build_object('status', status, 'status_reason', status_reason)),
       note_change('endpoint', tenant_id, id)
from paused

-- name: note_health
-- An endpoint began to fail, recovered, its breaker changed or a probe failed; written only then.
-- $1 endpoints, $2 whether failing, $3 breaker labels, $4 when, $5 failures since the last success, up to ten, $6 why a
-- probe failed, or null
update endpoint
set failures = change.failures,
    failing_since = case when change.failing then coalesce(endpoint.failing_since, change.at) end,
    last_failure_at = case when change.failing then change.at else endpoint.last_failure_at end,
    last_success_at = case when change.failing then endpoint.last_success_at else change.at end,
    breaker = change.breaker,
    last_probe_at = case
      when change.probe_error is not null then change.at
      when change.failing then endpoint.last_probe_at
    end,
    last_probe_error = case when change.failing then coalesce(change.probe_error, endpoint.last_probe_error) end
from unnest($1::uuid[], $2::boolean[], $3::text[], $4::timestamptz[], $5::integer[], $6::text[])
       as change (endpoint_id, failing, breaker, at, failures, probe_error)
where endpoint.id = change.endpoint_id

-- name: note_holds
-- Endpoints whose deliveries are held because nothing can be signed, or are no longer; written only when the reason
-- changes, and by the node that sends. Primary keys.
-- $1 endpoints, $2 reasons, empty: not held, $3 node
update endpoint
set held_reason = nullif(change.reason, ''),
    held_since = case when change.reason <> '' then coalesce(endpoint.held_since, now()) end
from unnest($1::uuid[], $2::text[]) as change (endpoint_id, reason),
     bucket_lease as lease
where endpoint.id = change.endpoint_id
  and lease.bucket = endpoint.bucket
  and lease.owner = $3::uuid

-- name: limit_lock_wait
-- For this transaction only: a partition is better made a moment later than everybody kept waiting.
select set_config('lock_timeout', '2s', true)

-- name: make_partitions_of
-- The partitions that these deliveries' history needs; made on demand after a long stop.
-- $1 days, as text
select make_partition(parent, day::date)
from unnest(array['attempt', 'dead_letter']) as parent,
     unnest($1::text[]) as day
