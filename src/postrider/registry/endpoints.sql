-- Endpoints. Changes lock the tenant's row, then the endpoint's (lock_tenant, lock_endpoint).

-- name: insert_endpoint
-- No row: the public ID or, very rarely, the tail is taken.
-- not null: all
insert into endpoint (
  id, public_id, tenant_id, bucket, delivery_tail, headers_sealed, url, description, max_attempts, timeout_ms,
  give_up_seconds, max_in_flight, rate_per_second, ordering, retry_schedule, on_rejected, signature, metadata,
  status_by, allow_networks
)
values (
  :id::uuid, :public_id::text, :tenant::text, :bucket::integer, :delivery_tail::text, :headers_sealed?::bytea,
  :url::text, :description?::text, :max_attempts::integer, :timeout_ms::integer,
  :give_up_seconds::integer, :max_in_flight::integer, :rate_per_second?::float8, :ordering::text,
  :retry_schedule?::jsonb, :on_rejected::text, :signature::text, :metadata?::jsonb, :status_by::text,
  :allow_networks::text[]::cidr[]
)
on conflict do nothing
returning id

-- name: free_public_id
-- A deleted endpoint releases its custom ID and keeps the one derived from its UUID. endpoint_by_tenant.
update endpoint
set public_id = 'ep_' || replace(id::text, '-', '')
where tenant_id = :tenant::text
  and public_id = :public_id::text
  and status = 'deleted'

-- name: ensure_position
-- Kept when an endpoint stops being ordered, so that positions never go back.
insert into endpoint_position (endpoint_id)
values (:endpoint::uuid)
on conflict (endpoint_id) do nothing

-- name: add_to_counts
-- Primary key; the row is locked already.
update tenant
set
  endpoint_count = endpoint_count + :endpoints::integer,
  strict_count = strict_count + :strict_endpoints::integer
where id = :tenant::text

-- name: load_endpoints
-- Primary key, subscription_by_endpoint, queue_lane, pause_span_by_tenant; for endpoints that may be unhealthy the newest 100 rows of
-- attempt_by_endpoint.
-- not null: id, public_id, tenant_id, bucket, url, max_attempts, timeout_ms, give_up_seconds, max_in_flight, ordering, on_rejected, signature, status, status_since, status_by, is_breaker_open, failures, revision, failed_attempts, created_at, updated_at, read_at, patterns, pending, allow_networks
select
  endpoint.id,
  endpoint.public_id,
  endpoint.tenant_id,
  endpoint.bucket,
  endpoint.headers_sealed,
  endpoint.url,
  endpoint.description,
  endpoint.max_attempts,
  endpoint.timeout_ms,
  endpoint.give_up_seconds,
  endpoint.max_in_flight,
  endpoint.rate_per_second,
  endpoint.ordering,
  endpoint.retry_schedule::text,
  endpoint.on_rejected,
  endpoint.signature,
  endpoint.allow_networks::text[] as allow_networks,
  endpoint.metadata::text,
  endpoint.status,
  endpoint.status_reason,
  endpoint.status_since,
  endpoint.status_by,
  endpoint.failing_since,
  endpoint.last_success_at,
  endpoint.last_failure_at,
  endpoint.breaker = 'open' as is_breaker_open,
  case when endpoint.breaker = 'open' then endpoint.breaker_since end as breaker_since,
  case when endpoint.breaker = 'open' then endpoint.next_probe_at end as next_probe_at,
  endpoint.last_probe_at,
  endpoint.last_probe_error,
  case when endpoint.failing_since is null then 0 else endpoint.failures end as failures,
  -- Pauses do not count towards disabling it.
  case
    when endpoint.failing_since is not null and endpoint.status = 'active' and endpoint.tenant_id <> 'postrider'
    then endpoint.failing_since + (
      select coalesce(sum(coalesce(p.until, now()) - greatest(p.since, endpoint.failing_since)), '0')::interval
      from pause_span p
      where p.tenant_id = endpoint.tenant_id
        and (p.endpoint_id = endpoint.id or p.endpoint_id is null)
        and coalesce(p.until, now()) > endpoint.failing_since
    )
  end as failing_counted_from,
  endpoint.held_reason,
  endpoint.held_since,
  endpoint.revision,
  case
    when endpoint.failing_since < now() - interval '60 hours'
    then attempts_since(endpoint.id, endpoint.failing_since)
    else 0
  end as failed_attempts,
  endpoint.created_at,
  endpoint.updated_at,
  now() as read_at,
  subscriptions.patterns,
  waiting.pending,
  waiting.oldest_at
from endpoint
cross join lateral (
  select coalesce(array_agg(s.pattern order by s.pattern), '{}') as patterns
  from subscription s
  where s.endpoint_id = endpoint.id
) as subscriptions
cross join lateral (
  select
    count(*)::integer as pending,
    min(waiting_rows.created_at) as oldest_at
  from (
    (
      select first_attempts.created_at
      from queue first_attempts
      where first_attempts.bucket = endpoint.bucket
        and first_attempts.endpoint_id = endpoint.id
        and first_attempts.retry = false
      order by first_attempts.position, first_attempts.due_at, first_attempts.id
      limit :pending_max::integer
    )
    union all
    (
      select retries.created_at
      from queue retries
      where retries.bucket = endpoint.bucket
        and retries.endpoint_id = endpoint.id
        and retries.retry = true
      order by retries.position, retries.due_at, retries.id
      limit :pending_max
    )
  ) as waiting_rows
) as waiting
where endpoint.id = any(:ids::uuid[])
order by endpoint.id

-- name: list_endpoint_ids
-- :patterns: one of these must be subscribed and enabled.
-- endpoint_by_tenant and a sort, or the primary key.
-- not null: all
select id
from endpoint
where tenant_id = :tenant::text
  and id > :after::uuid
  and status <> 'deleted'
  and (:status?::text is null or status = :status)
  and (:url_part?::text is null or strpos(url, :url_part) > 0)
  and (
    :patterns?::text[] is null
    or exists (
      select
      from subscription
      where subscription.endpoint_id = endpoint.id
        and subscription.pattern = any(:patterns)
        and subscription.enabled
    )
  )
order by id
limit :limit::integer

-- name: update_endpoint
-- :is_reset: whether the breaker closes and the failures are forgotten. Primary key; the row is
-- locked already.
update endpoint
set
  headers_sealed = :headers_sealed?::bytea,
  breaker = case when :is_reset::boolean then 'closed' else breaker end,
  failing_since = case when :is_reset then null else failing_since end,
  url = :url::text,
  description = :description?::text,
  max_attempts = :max_attempts::integer,
  timeout_ms = :timeout_ms::integer,
  give_up_seconds = :give_up_seconds::integer,
  max_in_flight = :max_in_flight::integer,
  rate_per_second = :rate_per_second?::float8,
  ordering = :ordering::text,
  retry_schedule = :retry_schedule?::jsonb,
  on_rejected = :on_rejected::text,
  signature = :signature::text,
  allow_networks = :allow_networks::text[]::cidr[],
  metadata = :metadata?::jsonb,
  updated_at = now()
where id = :id::uuid

-- name: set_endpoint_status
-- Resuming closes the breaker. Primary key; the row is locked already.
update endpoint
set
  status = :status::text,
  status_by = :actor::text,
  status_reason = :reason?::text,
  status_since = case when status = :status then status_since else now() end,
  breaker = case when :status = 'active' then 'closed' else breaker end,
  failing_since = case when :is_reset::boolean then null else failing_since end,
  updated_at = now()
where id = :id::uuid

-- name: cancel_pending
-- :now: the time by the node's clock, which dates events and may be slightly ahead of the database's.
-- Primary key; the row is locked already. The owner of the bucket cancels deliveries that were created until then.
update endpoint
set cancel_before = greatest(clock_timestamp(), :now::timestamptz),
    cancel_reason = null
where id = :id::uuid
returning cancel_before

-- name: open_endpoint_pause
insert into pause_span (tenant_id, endpoint_id)
values (:tenant::text, :endpoint::uuid)

-- name: close_endpoint_pause
-- pause_span_by_tenant.
update pause_span
set until = now()
where tenant_id = :tenant::text
  and endpoint_id = :endpoint::uuid
  and until is null

-- name: delete_secrets_and_subscriptions
-- subscription_by_endpoint, endpoint_secret_by_endpoint.
with unsubscribed as (
  delete from subscription
  where endpoint_id = :endpoint::uuid
)
delete from endpoint_secret
where endpoint_id = :endpoint

-- name: delete_endpoint
-- Primary key; the row is locked already.
update endpoint
set
  status = 'deleted',
  status_by = :actor::text,
  status_reason = null,
  status_since = now(),
  headers_sealed = null,
  updated_at = now()
where id = :id::uuid
