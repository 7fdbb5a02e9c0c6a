-- What people do to a delivery that is in the queue. Guarded by its row: zero rows means that it has left the queue. The
-- control log notifies the owner of the bucket; the result of an attempt in flight then finds no row, or an unchanged
-- one.

-- part: the_row
queue.bucket = l.bucket
    and queue.id = :delivery::uuid
    and (:tenant?::text is null or queue.tenant_id = :tenant)

-- part: audit_caller
tenant_id, public_id_of('dlv', id), reason => :reason?::text,
                   address => :address?::text, request_id => :request_id?::text, on_behalf_of => :on_behalf_of?::text,
                   actor_name => :actor_name?::text

-- name: cancel_delivery
-- Without a tenant, a delivery of any tenant. Index: queue_pkey per bucket.
with gone as (
  delete from queue
  using bucket_lease as l
  where {{the_row}}
  returning queue.*
),
note as (
  insert into attempt (delivery_id, attempt, bucket, endpoint_id, event_id, tenant_id, outcome, started_at, total_us,
                       node_id, created_at, replay_id, error_detail, is_kept)
  select id, 0, bucket, endpoint_id, event_id, tenant_id, 'canceled', now(), 0,
         '00000000-0000-0000-0000-000000000000', created_at, replay_id,
         'canceled by ' || :actor::text || coalesce(': ' || :reason?::text, ''),
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
select write_audit(:actor_kind::text, :actor, 'delivery.cancel', {{audit_caller}}) as audited,
       record_change('cancel', tenant_id, endpoint_id, id) as noted
from gone

-- name: retry_delivery
-- As cancel_delivery: due now instead of later.
with expedited as (
  update queue
  set due_at = least(queue.due_at, now())
  from bucket_lease as l
  where {{the_row}}
  returning queue.*
)
select write_audit(:actor_kind::text, :actor::text, 'delivery.retry', {{audit_caller}}) as audited,
       record_change('retry', tenant_id, endpoint_id, id) as noted
from expedited
