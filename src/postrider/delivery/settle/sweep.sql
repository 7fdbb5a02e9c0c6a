-- Rows of endpoints that get nothing any more leave the queue, a page at a time, in the order of queue_lane, so that a
-- page reads only its own rows. Each statement returns the ids that it removed. Guarded by the lease, like a settle.

-- part: delete_swept
delete from queue
  using swept, bucket_lease as lease
  where queue.bucket = swept.bucket
    and queue.id = swept.id
    and lease.bucket = queue.bucket
    and lease.owner = :node::uuid
    and lease.epoch = :epoch::bigint
  returning queue.*

-- part: of_endpoint
swept as (
  select bucket, id
  from queue
  where bucket = :bucket::int
    and endpoint_id = :endpoint::uuid
  order by bucket, endpoint_id, retry, position, due_at, id
  limit :rows_max::int
)

-- part: is_older
-- A replay with `not_before` is dated when it becomes due. A person who cancels what is pending means it, too, and its ID
-- shows when it was made; retention does not mean it.
(queue.created_at <= :before::timestamptz
      or :with_scheduled::boolean and queue.replay_id is not null and id_time(queue.id) <= :before)

-- part: count_canceled
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

-- part: attempt_columns
delivery_id, attempt, bucket, endpoint_id, event_id, tenant_id, started_at, total_us, node_id, created_at, replay_id,
                     is_kept, outcome, error_detail

-- part: attempt_values
id, 0, bucket, endpoint_id, event_id, tenant_id, now(), 0, :node, created_at, replay_id,
       id < (select below from kept_since where name = 'attempts')

-- name: sweep_disabled
-- Rows of a disabled endpoint become dead letters.
-- not null: all
-- row: swept
with {{of_endpoint}},
deleted as (
  {{delete_swept}}
),
gone as (
  select deleted.*, 'endpoint_disabled' as cause, null::int as status_code, null::text as error,
         'the endpoint is disabled' as error_detail
  from deleted
),
letter as (
  insert into dead_letter ({{delivery/settle/dead_letter.letter_columns}})
  select id, bucket, endpoint_id, event_id, tenant_id, cause, attempts, status_code, error, error_detail, created_at,
         id < (select below from kept_since where name = 'events')
  from gone
),
{{delivery/settle/dead_letter.count_failed}},
{{delivery/settle/dead_letter.count_letters}}
insert into attempt ({{attempt_columns}})
select {{attempt_values}}, 'dead_letter', error_detail
from gone
returning delivery_id

-- name: sweep_canceled
-- Rows of a deleted endpoint are canceled.
-- not null: all
-- row: swept
with {{of_endpoint}},
gone as (
  {{delete_swept}}
),
{{count_canceled}}
insert into attempt ({{attempt_columns}})
select {{attempt_values}}, 'canceled', 'the endpoint was deleted'
from gone
returning delivery_id

-- name: sweep_older
-- Rows of an endpoint that were made up to a time are canceled. It reads the newer rows of the lane, too.
-- not null: all
-- row: swept
with swept as (
  select bucket, id
  from queue
  where bucket = :bucket::int
    and endpoint_id = :endpoint::uuid
    and {{is_older}}
  order by bucket, endpoint_id, retry, position, due_at, id
  limit :rows_max::int
),
gone as (
  {{delete_swept}}
),
{{count_canceled}}
insert into attempt ({{attempt_columns}})
select {{attempt_values}}, 'canceled', :detail::text
from gone
returning delivery_id

-- name: end_clearing
-- Nothing that old is left: the endpoint continues. Guarded by the lease, because without it the sweep found nothing.
-- not null: all
with cleared as (
  update endpoint
  set cancel_before = null,
      cancel_reason = null
  where id = (select id from endpoint where id = :endpoint::uuid for no key update skip locked)
    and cancel_before = :before::timestamptz
    and exists (
      select
      from bucket_lease
      where bucket = :bucket::int
        and owner = :node::uuid
        and epoch = :epoch::bigint
    )
    and not exists (
      select
      from queue
      where queue.bucket = :bucket
        and queue.endpoint_id = :endpoint
        and {{is_older}}
    )
  returning id, tenant_id
)
select record_change('endpoint', tenant_id, id) as noted
from cleared
