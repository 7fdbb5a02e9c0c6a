-- What the delivery engine loads about endpoints.

-- name: load_endpoint_configs
-- Primary keys of endpoint and tenant, endpoint_secret_by_endpoint, pause_span_by_tenant,
-- unserved_span_by_bucket. Locks nothing.
-- not null: all but rate_per_second, headers_sealed, tenant_max_in_flight, tenant_rate_per_second, cancel_before, cancel_reason, held_reason, last_success_at
-- null elements: secrets_expire_at, paused_until, unserved_until
select
  endpoint.id,
  endpoint.public_id,
  endpoint.tenant_id,
  endpoint.bucket,
  endpoint.status,
  tenant.status as tenant_status,
  endpoint.url,
  endpoint.url_version,
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
  endpoint.allow_networks::text[] as allow_networks,
  tenant.allow_networks::text[] as tenant_allow_networks,
  secrets.ids as secret_ids,
  secrets.sealed as secrets_sealed,
  secrets.expires_at as secrets_expire_at,
  pauses.since as paused_since,
  pauses.until as paused_until,
  unserved.since as unserved_since,
  unserved.until as unserved_until,
  endpoint.cancel_before,
  endpoint.cancel_reason,
  endpoint.held_reason,
  now() as read_at
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
  from (
    select since, until
    from pause_span
    where tenant_id = endpoint.tenant_id
      and (endpoint_id = endpoint.id or endpoint_id is null)
    union all
    select since, coalesce(until, now())
    from brake_span
    union all
    -- A lane that can sign again loads this before the end of the hold is noted.
    select endpoint.held_since, now()
    where endpoint.held_since is not null
  ) as p
) as pauses
cross join lateral (
  select
    coalesce(array_agg(u.since order by u.since), '{}') as since,
    coalesce(array_agg(u.until order by u.since), '{}') as until
  from unserved_span u
  where u.bucket = endpoint.bucket
) as unserved
