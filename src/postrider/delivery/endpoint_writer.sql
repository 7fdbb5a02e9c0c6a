-- What attempts say about an endpoint itself. None of these waits for an endpoint that an open transaction has locked:
-- such a change is written later.

-- name: disable_endpoint
-- An answer said that the endpoint is gone. Zero rows: the status changed meanwhile, or an open
-- transaction holds the endpoint: it is not waited for, and endpoint_status tells. An operator's pause stays the
-- operator's to end.
-- $1 endpoint, $2 reason
with disabled as (
  update endpoint
  set status = 'disabled',
      status_by = case when status = 'paused' and status_by = 'operator' then 'operator' else 'postrider' end,
      status_reason = $2::text,
      status_since = now(),
      revision = revision + 1,
      updated_at = now()
  where id = (select id from endpoint where id = $1::uuid for no key update skip locked)
    and status in ('active', 'paused')
  returning id, tenant_id, public_id, status, status_reason
)
select write_audit('system', 'system', 'endpoint.disable', tenant_id, public_id,
                   after => jsonb_build_object('status', status, 'status_reason', status_reason)),
       note_change('endpoint', tenant_id, id)
from disabled

-- name: pause_endpoint
-- Too many rejections in a row for an endpoint that wants to be paused then. Zero rows: as disable_endpoint.
-- $1 endpoint, $2 reason
with paused as (
  update endpoint
  set status = 'paused',
      status_by = 'postrider',
      status_reason = $2::text,
      status_since = now(),
      revision = revision + 1,
      updated_at = now()
  where id = (select id from endpoint where id = $1::uuid for no key update skip locked)
    and status = 'active'
  returning id, tenant_id, public_id, status, status_reason
),
span as (
  insert into pause_span (tenant_id, endpoint_id)
  select tenant_id, id
  from paused
)
select write_audit('system', 'system', 'endpoint.pause', tenant_id, public_id,
                   after => jsonb_build_object('status', status, 'status_reason', status_reason)),
       note_change('endpoint', tenant_id, id)
from paused

-- name: endpoint_status
-- $1 endpoint
select status
from endpoint
where id = $1::uuid

-- name: note_health
-- An endpoint began to fail, recovered, its breaker changed or a probe failed; or a minute has passed since a success
-- was noted.
-- $1 endpoints, $2 whether failing, $3 breaker labels, $4 when, $5 failures since the last success, up to ten, $6 why a
-- probe failed, or null, $7 the last success, or null. An endpoint that an open transaction holds is left out and returned: it is noted later.
with free as materialized (
  select id
  from endpoint
  where id = any ($1::uuid[])
  order by id
  for no key update skip locked
),
noted as (
  update endpoint
  set failures = change.failures,
      failing_since = case when change.failing then coalesce(endpoint.failing_since, change.at) end,
      last_failure_at = case when change.failing then change.at else endpoint.last_failure_at end,
      last_success_at = case when change.failing then greatest(endpoint.last_success_at, change.succeeded_at) else change.at end,
      breaker = change.breaker,
      last_probe_at = case
        when change.probe_error is not null then change.at
        when change.failing then endpoint.last_probe_at
      end,
      last_probe_error = case when change.failing then coalesce(change.probe_error, endpoint.last_probe_error) end
  from unnest($1::uuid[], $2::boolean[], $3::text[], $4::timestamptz[], $5::integer[], $6::text[], $7::timestamptz[])
         as change (endpoint_id, failing, breaker, at, failures, probe_error, succeeded_at)
  where endpoint.id = change.endpoint_id
    and endpoint.id in (select id from free)
)
select id
from endpoint
where id = any ($1::uuid[])
  and id not in (select id from free)

-- name: note_holds
-- Endpoints whose deliveries are held because nothing can be signed, or are no longer; written only when the reason
-- changes, and by the node that sends. Primary keys.
-- $1 endpoints, $2 reasons, empty: not held, $3 node. As note_health, those that are held are returned.
with free as materialized (
  select id
  from endpoint
  where id = any ($1::uuid[])
  order by id
  for no key update skip locked
),
noted as (
  update endpoint
  set held_reason = nullif(change.reason, ''),
      held_since = case when change.reason <> '' then coalesce(endpoint.held_since, now()) end
  from unnest($1::uuid[], $2::text[]) as change (endpoint_id, reason),
       bucket_lease as lease
  where endpoint.id = change.endpoint_id
    and lease.bucket = endpoint.bucket
    and lease.owner = $3::uuid
    and endpoint.id in (select id from free)
)
select id
from endpoint
where id = any ($1::uuid[])
  and id not in (select id from free)
