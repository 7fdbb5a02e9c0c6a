-- What attempts show about an endpoint itself. None of these waits for an endpoint that an open transaction has locked:
-- such a change is written later.

-- part: unlocked
-- Locks those that no other transaction has locked, in the order of their ids.
unlocked as materialized (
  select id
  from endpoint
  where id = any (:endpoints::uuid[])
  order by id
  for no key update skip locked
)

-- part: locked_elsewhere
-- Left out; the caller writes them again later.
select id
from endpoint
where id = any (:endpoints)
  and id not in (select id from unlocked)

-- part: record_status
select write_audit('system', 'system', 'endpoint.' || action, tenant_id, public_id,
                   after => jsonb_build_object('status', status, 'status_reason', status_reason)) as audited,
       record_change('endpoint', tenant_id, id) as noted

-- name: disable_endpoint
-- A response said that the endpoint is gone. Zero rows: its status has changed, or an open transaction has locked it;
-- endpoint_status shows which. After an operator's pause only an operator can resume it.
with disabled as (
  update endpoint
  set status = 'disabled',
      status_by = case when status = 'paused' and status_by = 'operator' then 'operator' else 'postrider' end,
      status_reason = :reason::text,
      status_since = now(),
      revision = revision + 1,
      updated_at = now()
  where id = (select id from endpoint where id = :endpoint::uuid for no key update skip locked)
    and status in ('active', 'paused')
  returning id, tenant_id, public_id, status, status_reason, 'disable' as action
)
{{record_status}}
from disabled

-- name: pause_endpoint
-- Too many rejections in a row for an endpoint with `on_rejected` = `pause`. Zero rows: as disable_endpoint.
with paused as (
  update endpoint
  set status = 'paused',
      status_by = 'postrider',
      status_reason = :reason::text,
      status_since = now(),
      revision = revision + 1,
      updated_at = now()
  where id = (select id from endpoint where id = :endpoint::uuid for no key update skip locked)
    and status = 'active'
  returning id, tenant_id, public_id, status, status_reason, 'pause' as action
),
span as (
  insert into pause_span (tenant_id, endpoint_id)
  select tenant_id, id
  from paused
)
{{record_status}}
from paused

-- name: endpoint_status
-- not null: all
select status
from endpoint
where id = :endpoint::uuid

-- name: note_health
-- Endpoints that began to fail or recovered, whose breaker changed, or for which a probe failed; or a minute has passed
-- since the last note. `failures` since the last success. Returns those that are locked. Primary keys.
-- not null: all
-- row: locked_endpoint
with {{unlocked}},
noted as (
  update endpoint
  set failures = change.failures,
      failing_since = case when change.is_failing then coalesce(endpoint.failing_since, change.at) end,
      last_failure_at = case when change.is_failing then change.at else endpoint.last_failure_at end,
      last_success_at = case
        when change.is_failing then greatest(endpoint.last_success_at, change.succeeded_at)
        else change.at
      end,
      breaker = change.breaker,
      breaker_since = case when change.breaker = endpoint.breaker then endpoint.breaker_since else change.at end,
      next_probe_at = change.next_probe_at,
      last_probe_at = case
        when change.probe_error is not null then change.at
        when change.is_failing then endpoint.last_probe_at
      end,
      last_probe_error = case when change.is_failing then coalesce(change.probe_error, endpoint.last_probe_error) end
  from unnest(:endpoints, :are_failing::boolean[], :breakers::text[], :at::timestamptz[], :failures::integer[],
              :probe_errors::text[], :succeeded_at::timestamptz[], :next_probes_at::timestamptz[])
         as change (endpoint_id, is_failing, breaker, at, failures, probe_error, succeeded_at, next_probe_at)
  where endpoint.id = change.endpoint_id
    and endpoint.id in (select id from unlocked)
)
{{locked_elsewhere}}

-- name: note_holds
-- Endpoints whose deliveries are held because nothing can be signed, or are no longer (an empty reason). Written only
-- when the reason changes, and by the node that sends. The end of a hold leaves its span, like a pause. Returns those that
-- are locked. Primary keys.
-- not null: all
-- row: locked_endpoint
with {{unlocked}},
noted as (
  update endpoint
  set held_reason = nullif(change.reason, ''),
      held_since = case when change.reason <> '' then coalesce(endpoint.held_since, now()) end
  from unnest(:endpoints, :reasons::text[]) as change (endpoint_id, reason),
       bucket_lease as lease
  where endpoint.id = change.endpoint_id
    and lease.bucket = endpoint.bucket
    and lease.owner = :node::uuid
    and endpoint.id in (select id from unlocked)
  returning endpoint.id, endpoint.held_since
),
-- It reads the endpoint as it was before the update.
span as (
  insert into pause_span (tenant_id, endpoint_id, since, until)
  select endpoint.tenant_id, endpoint.id, endpoint.held_since, now()
  from noted
  join endpoint on endpoint.id = noted.id
  where noted.held_since is null
    and endpoint.held_since is not null
)
{{locked_elsewhere}}
