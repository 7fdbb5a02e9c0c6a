-- What people do to a delivery that is in the queue. Guarded by its row: zero rows means that it is not there any
-- more. The owner of the bucket hears of it through the control log; what it has in flight settles on a row that is
-- gone or unchanged.

-- name: cancel_delivery
-- $1 delivery, $2 tenant or null for any, $3 actor, $4 reason, $5 address, $6 request, $7 kind of actor, $8 on whose
-- behalf. Index: queue_pkey per bucket.
with gone as (
  delete from queue
  using bucket_lease as l
  where queue.bucket = l.bucket
    and queue.id = $1::uuid
    and ($2::text is null or queue.tenant_id = $2::text)
  returning queue.*
),
note as (
  insert into attempt (delivery_id, attempt, bucket, endpoint_id, event_id, tenant_id, outcome, started_at, total_us,
                       node_id, created_at, replay_id, error_detail, is_kept)
  select id, 0, bucket, endpoint_id, event_id, tenant_id, 'canceled', now(), 0,
         '00000000-0000-0000-0000-000000000000', created_at, replay_id,
         'canceled by ' || $3::text || coalesce(': ' || $4::text, ''),
         id < (select below from kept_since where name = 'attempts')
  from gone
),
progress as (
  insert into replay_progress as p (replay_id, bucket, canceled)
  select replay_id, bucket, 1
  from gone
  where replay_id is not null
  on conflict (replay_id, bucket) do update
  set canceled = p.canceled + 1
)
select write_audit($7::text, $3::text, 'delivery.cancel', tenant_id, public_id_of('dlv', id), reason => $4::text,
                   address => $5::text, request_id => $6::text, on_behalf_of => $8::text),
       note_change('cancel', tenant_id, endpoint_id, id)
from gone

-- name: retry_delivery
-- As cancel_delivery: due now instead of later.
with hurried as (
  update queue
  set due_at = least(queue.due_at, now())
  from bucket_lease as l
  where queue.bucket = l.bucket
    and queue.id = $1::uuid
    and ($2::text is null or queue.tenant_id = $2::text)
  returning queue.*
)
select write_audit($7::text, $3::text, 'delivery.retry', tenant_id, public_id_of('dlv', id), reason => $4::text,
                   address => $5::text, request_id => $6::text, on_behalf_of => $8::text),
       note_change('retry', tenant_id, endpoint_id, id)
from hurried
