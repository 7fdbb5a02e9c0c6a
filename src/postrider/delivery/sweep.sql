-- Rows of endpoints that get nothing any more leave the queue, a page at a time. Each statement returns the ids that it
-- removed. Guarded by the lease, like a settle.

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
                           created_at, is_kept)
  select id, bucket, endpoint_id, event_id, tenant_id, 'endpoint_disabled', attempts, 'the endpoint is disabled',
         created_at,
         id < (select below from kept_since where name = 'events')
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
                     node_id, created_at, replay_id, error_detail, is_kept)
select id, 0, bucket, endpoint_id, event_id, tenant_id, 'dead_letter', now(), 0, $1::uuid, created_at, replay_id,
       'the endpoint is disabled',
       id < (select below from kept_since where name = 'attempts')
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
                     node_id, created_at, replay_id, error_detail, is_kept)
select id, 0, bucket, endpoint_id, event_id, tenant_id, 'canceled', now(), 0, $1::uuid, created_at, replay_id,
       'the endpoint was deleted',
       id < (select below from kept_since where name = 'attempts')
from gone
returning delivery_id

-- name: sweep_older
-- Rows of an endpoint up to a time are canceled, some at a time, in the order of queue_lane. It reads the newer rows
-- of the lane, too.
-- $1 node, $2 bucket, $3 endpoint, $4 epoch, $5 how many at most, $6 the time, $7 the reason
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
                     node_id, created_at, replay_id, error_detail, is_kept)
select id, 0, bucket, endpoint_id, event_id, tenant_id, 'canceled', now(), 0, $1::uuid, created_at, replay_id,
       $7::text,
       id < (select below from kept_since where name = 'attempts')
from gone
returning delivery_id

-- name: end_clearing
-- Nothing that old is left: the endpoint goes on. Guarded by the lease, because without it the sweep found nothing.
-- $1 node, $2 bucket, $3 endpoint, $4 epoch, $5 the time
with cleared as (
  update endpoint
  set cancel_before = null,
      cancel_reason = null
  where id = (select id from endpoint where id = $3::uuid for no key update skip locked)
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
