-- Endpoints. Changes lock the tenant's row, then the endpoint's (lock_tenant, lock_endpoint).

-- name: insert_endpoint
-- $1 id, $2 outside id, $3 tenant, $4 bucket, $5 delivery tail, $6 sealed headers, then the settings. No row: the
-- outside id or, once in a blue moon, the tail is taken.
insert into endpoint (
  id, outside_id, tenant_id, bucket, delivery_tail, headers_sealed, url, description, max_attempts, timeout_ms,
  give_up_seconds, max_in_flight, rate_per_second, ordering, retry_schedule, on_rejected, signature, metadata
)
values (
  $1::uuid, $2::text, $3::text, $4::integer, $5::text, $6::bytea, $7::text, $8::text, $9::integer, $10::integer,
  $11::integer, $12::integer, $13::float8, $14::text, $15::jsonb, $16::text, $17::text, $18::jsonb
)
on conflict do nothing
returning id

-- name: free_outside_id
-- $1 tenant, $2 outside id. A deleted endpoint gives its own id back and goes on under the one made from its uuid.
-- endpoint_by_outside_id.
update endpoint
set outside_id = 'ep_' || replace(id::text, '-', '')
where tenant_id = $1::text
  and outside_id = $2::text
  and status = 'deleted'

-- name: ensure_position
-- $1 endpoint. Kept when an endpoint stops being ordered, so that positions never go back.
insert into endpoint_position (endpoint_id)
values ($1::uuid)
on conflict (endpoint_id) do nothing

-- name: add_to_counts
-- $1 tenant, $2 endpoints more, $3 strict ones more. Primary key; the row is locked already.
update tenant
set
  endpoint_count = endpoint_count + $2::integer,
  strict_count = strict_count + $3::integer
where id = $1::text

-- name: load_endpoints
-- $1 ids, $2 how many pending deliveries are counted at most. Primary key, subscription_by_endpoint, queue_lane; for
-- those that may be unhealthy attempt_by_endpoint, of which the newest 100 rows are looked at.
select
  endpoint.id,
  endpoint.outside_id,
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
  endpoint.metadata::text,
  endpoint.status,
  endpoint.status_reason,
  endpoint.status_since,
  endpoint.status_by = 'postrider',
  endpoint.failing_since,
  endpoint.last_success_at,
  endpoint.last_failure_at,
  endpoint.breaker = 'open',
  endpoint.last_probe_at,
  endpoint.last_probe_error,
  endpoint.held_reason,
  endpoint.held_since,
  endpoint.revision,
  case
    when endpoint.failing_since < now() - interval '60 hours'
    then attempts_since(endpoint.id, endpoint.failing_since)
    else 0
  end,
  endpoint.created_at,
  endpoint.updated_at,
  now(),
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
      limit $2::integer
    )
    union all
    (
      select retries.created_at
      from queue retries
      where retries.bucket = endpoint.bucket
        and retries.endpoint_id = endpoint.id
        and retries.retry = true
      order by retries.position, retries.due_at, retries.id
      limit $2::integer
    )
  ) as waiting_rows
) as waiting
where endpoint.id = any($1::uuid[])
order by endpoint.id

-- name: list_endpoint_ids
-- $1 tenant, $2 the last id of the page before, $3 limit, $4 status or null, $5 part of the URL or null, $6 patterns
-- of which one must be subscribed and enabled, or null. endpoint_by_outside_id and a sort, or the primary key.
select id
from endpoint
where tenant_id = $1::text
  and id > $2::uuid
  and status <> 'deleted'
  and ($4::text is null or status = $4)
  and ($5::text is null or strpos(url, $5) > 0)
  and (
    $6::text[] is null
    or exists (
      select
      from subscription
      where subscription.endpoint_id = endpoint.id
        and subscription.pattern = any($6)
        and subscription.enabled
    )
  )
order by id
limit $3::integer

-- name: update_endpoint
-- $1 id, $2 sealed headers, $3 whether the breaker closes and the failures are forgotten, then the settings.
-- Primary key; the row is locked already.
update endpoint
set
  headers_sealed = $2::bytea,
  breaker = case when $3::boolean then 'closed' else breaker end,
  failing_since = case when $3::boolean then null else failing_since end,
  url = $4::text,
  description = $5::text,
  max_attempts = $6::integer,
  timeout_ms = $7::integer,
  give_up_seconds = $8::integer,
  max_in_flight = $9::integer,
  rate_per_second = $10::float8,
  ordering = $11::text,
  retry_schedule = $12::jsonb,
  on_rejected = $13::text,
  signature = $14::text,
  metadata = $15::jsonb,
  updated_at = now()
where id = $1::uuid

-- name: set_endpoint_status
-- $1 id, $2 status, $3 reason, $4 whether the failures are forgotten. Resuming closes the breaker. Primary key; the
-- row is locked already.
update endpoint
set
  status = $2::text,
  status_by = 'person',
  status_reason = $3::text,
  status_since = case when status = $2::text then status_since else now() end,
  breaker = case when $2 = 'active' then 'closed' else breaker end,
  failing_since = case when $4::boolean then null else failing_since end,
  updated_at = now()
where id = $1::uuid

-- name: cancel_pending
-- $1 id, $2 the time by the node's clock, which dates what is published and may be ahead of the database's by a
-- little. Primary key; the row is locked already. The owner of the bucket cancels what was created until then.
update endpoint
set cancel_before = greatest(clock_timestamp(), $2::timestamptz)
where id = $1::uuid
returning cancel_before

-- name: open_endpoint_pause
-- $1 tenant, $2 endpoint.
insert into pause_span (tenant_id, endpoint_id)
values ($1::text, $2::uuid)

-- name: close_endpoint_pause
-- $1 tenant, $2 endpoint. pause_span_by_tenant.
update pause_span
set until = now()
where tenant_id = $1::text
  and endpoint_id = $2::uuid
  and until is null

-- name: delete_secrets_and_subscriptions
-- $1 endpoint. subscription_by_endpoint, endpoint_secret_by_endpoint.
with unsubscribed as (
  delete from subscription
  where endpoint_id = $1::uuid
)
delete from endpoint_secret
where endpoint_id = $1::uuid

-- name: delete_endpoint
-- $1 endpoint. Primary key; the row is locked already.
update endpoint
set
  status = 'deleted',
  status_reason = null,
  status_since = now(),
  headers_sealed = null,
  updated_at = now()
where id = $1::uuid
