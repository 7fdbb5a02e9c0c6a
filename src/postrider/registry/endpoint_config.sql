-- What the delivery engine loads about endpoints.

-- name: load_endpoint_configs
-- Primary keys of endpoint and tenant, endpoint_secret_by_endpoint, pause_span_by_tenant. Locks nothing.
-- not null: all but rate_per_second, headers_sealed, tenant_max_in_flight, tenant_rate_per_second, cancel_before, cancel_reason, held_reason, last_success_at
-- null elements: secrets_expire_at, paused_until
select
  endpoint.id,
  endpoint.public_id,
  endpoint.tenant_id,
  endpoint.bucket,
  endpoint.status,
  tenant.status as tenant_status,
  endpoint.url,
  endpoint.max_attempts,
  endpoint.timeout_ms,
  endpoint.give_up_seconds,
  endpoint.max_in_flight,
  endpoint.rate_per_second,
  endpoint.ordering,
  coalesce(endpoint.retry_schedule::text, 'null') as retry_schedule,
  endpoint.on_rejected,
  endpoint.breaker = 'open' as is_breaker_open,
  endpoint.failing_since is not null as is_failing,
  endpoint.failures,
  endpoint.last_success_at,
  endpoint.signature,
  endpoint.headers_sealed,
  tenant.max_in_flight as tenant_max_in_flight,
  tenant.rate_per_second as tenant_rate_per_second,
  secrets.ids as secret_ids,
  secrets.sealed as secrets_sealed,
  secrets.expires_at as secrets_expire_at,
  pauses.since as paused_since,
  pauses.until as paused_until,
  endpoint.cancel_before,
  endpoint.cancel_reason,
  endpoint.held_reason
from unnest(:ids::uuid[]) as wanted (id)
join endpoint on endpoint.id = wanted.id
join tenant on tenant.id = endpoint.tenant_id
cross join lateral (
  select
    coalesce(array_agg(s.id order by s.expires_at is null desc, s.id desc), '{}') as ids,
    coalesce(array_agg(s.sealed order by s.expires_at is null desc, s.id desc), '{}') as sealed,
    coalesce(array_agg(s.expires_at order by s.expires_at is null desc, s.id desc), '{}') as expires_at
  from endpoint_secret s
  where s.endpoint_id = endpoint.id
    and (s.expires_at is null or s.expires_at > now())
) as secrets
cross join lateral (
  select
    coalesce(array_agg(p.since order by p.since), '{}') as since,
    coalesce(array_agg(p.until order by p.since), '{}') as until
  from pause_span p
  where p.tenant_id = endpoint.tenant_id
    and (p.endpoint_id = endpoint.id or p.endpoint_id is null)
    and (p.until is null or p.until > now() - make_interval(secs => endpoint.give_up_seconds))
) as pauses
