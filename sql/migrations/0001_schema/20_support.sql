-- Functions for people who write SQL.

-- ── public IDs to uuids, so that indexes are used ────────────────────────────────────────────────────────────────────

create function event_id(tenant text, event text) returns uuid language sql stable
security definer set search_path = postrider, pg_temp as $$
  select coalesce((select k.event_id
                   from postrider.event_key k
                   where k.tenant_id = tenant
                     and k.kind = 'id'
                     and k.key = event),
                  postrider.parse_public_id(event, 'evt'))
$$;

-- A custom ID must be used by one tenant only; otherwise pass the tenant.
create function endpoint_id(endpoint text) returns uuid language sql stable
security definer set search_path = postrider, pg_temp as $$
  select coalesce(postrider.parse_public_id(endpoint, 'ep'),
                  (select case when count(*) = 1 then (array_agg(e.id))[1] end
                   from postrider.endpoint e
                   where e.public_id = endpoint))
$$;

create function endpoint_id(tenant text, endpoint text) returns uuid language sql stable
security definer set search_path = postrider, pg_temp as $$
  select e.id
  from postrider.endpoint e
  where e.tenant_id = tenant
    and e.public_id = endpoint
$$;

create function delivery_id(delivery text) returns uuid language sql immutable strict parallel safe as $$
  select postrider.parse_public_id(delivery, 'dlv')
$$;

-- ── one delivery, event or endpoint by its public ID ─────────────────────────────────────────────────────────────────

-- Each is inlined into the statement that calls it, so that EXPLAIN shows its indexes.
create function delivery(delivery text) returns setof webhook_deliveries language sql stable as $$
  select d.*
  from postrider.webhook_deliveries d
  where d.id = postrider.delivery_id(delivery.delivery)
$$;

create function event(tenant text, event text) returns setof webhook_events language sql stable as $$
  select e.*
  from postrider.webhook_events e
  where e.id = postrider.event_id(event.tenant, event.event)
    and e.tenant_id = event.tenant
$$;

-- A custom ID that several tenants use finds all of them.
create function endpoint(endpoint text) returns setof webhook_endpoints language sql stable as $$
  select e.*
  from postrider.webhook_endpoints e
  where e.id = postrider.parse_public_id(endpoint.endpoint, 'ep')
     or e.endpoint = endpoint.endpoint
$$;

create function endpoint(tenant text, endpoint text) returns setof webhook_endpoints language sql stable as $$
  select e.*
  from postrider.webhook_endpoints e
  where e.id = postrider.endpoint_id(endpoint.tenant, endpoint.endpoint)
$$;

-- The deliveries of one event, replays included. Their IDs begin like the event's, so they are in one partition.
create function deliveries_of(tenant text, event text) returns setof webhook_deliveries
language plpgsql stable security definer set search_path = postrider, pg_temp as $$
declare
  wanted uuid := event_id(tenant, event);
begin
  return query
  select d.*
  from webhook_deliveries d
  where d.id >= first_delivery_id(wanted)
    and d.id <= last_delivery_id(wanted)
    and d.event_id >= first_delivery_id(wanted)
    and d.event_id <= last_delivery_id(wanted)
    and d.tenant_id = deliveries_of.tenant
    and d.replay_id is null
  union all
  select d.*
  from webhook_deliveries d
  where d.event_id >= first_delivery_id(wanted)
    and d.event_id <= last_delivery_id(wanted)
    and d.tenant_id = deliveries_of.tenant
    and d.replay_id is not null;
end
$$;

-- How many of an endpoint's newest 100 attempts began at that time or later. A function, because planning a query over all
-- days of `attempt` takes milliseconds, and few endpoints need it.
create function attempts_since(endpoint uuid, since timestamptz) returns integer language plpgsql stable
set search_path = postrider, pg_temp as $$
begin
  return (
    select count(*)
    from (
      select a.started_at
      from attempt a
      where a.endpoint_id = endpoint and a.attempt <> 0
      order by a.delivery_id desc
      limit 100
    ) as newest
    where newest.started_at >= since
  );
end
$$;

-- "Which endpoints receive invoice.paid?", with wildcards, and with endpoints that are not active.
create function endpoints_for(tenant text, type text)
returns table (endpoint_id uuid, endpoint text, url text, status text, pattern text, versions text[])
language sql stable security definer set search_path = postrider, pg_temp as $$
  select e.id, e.public_id, e.url, e.status, s.pattern, s.versions
  from postrider.subscription s
  join postrider.endpoint e on e.id = s.endpoint_id
  where s.tenant_id = tenant
    and s.enabled
    and e.status <> 'deleted'
    and (s.pattern = '*' or s.pattern = type
         or (s.pattern like '%.*' and starts_with(type, left(s.pattern, -1))))
  order by e.public_id, s.pattern
$$;

-- The endpoint with this public ID, without or with its tenant. An error if there is none, or more than one.
create function find_endpoint(endpoint text) returns uuid
language plpgsql stable set search_path = postrider, pg_temp as $$
declare
  ids uuid[];
  tenants text[];
begin
  select array_agg(e.id), array_agg(e.tenant_id order by e.tenant_id)
  into ids, tenants
  from endpoint e
  where (e.id = postrider.parse_public_id(find_endpoint.endpoint, 'ep') or e.public_id = find_endpoint.endpoint)
    and e.status <> 'deleted';
  if ids is null then
    raise exception 'endpoint % does not exist', endpoint using errcode = 'no_data_found';
  end if;
  if cardinality(ids) > 1 then
    raise exception 'endpoint % is ambiguous: % tenants have an endpoint with this ID', endpoint, cardinality(ids)
      using errcode = 'too_many_rows',
            detail = format('Tenants: %s%s.', array_to_string(tenants[:10], ', '),
                            case when cardinality(tenants) > 10 then ', …' else '' end),
            hint = format('Pass the tenant as the first argument: (%L, %L, ''reason'').', tenants[1], endpoint);
  end if;
  return ids[1];
end
$$;
create function find_endpoint(tenant text, endpoint text) returns uuid
language plpgsql stable set search_path = postrider, pg_temp as $$
declare
  id uuid;
begin
  select e.id into id
  from endpoint e
  where e.tenant_id = tenant
    and e.public_id = find_endpoint.endpoint
    and e.status <> 'deleted';
  if not found then
    raise exception 'endpoint % of tenant % does not exist', endpoint, tenant using errcode = 'no_data_found';
  end if;
  return id;
end
$$;

-- Pauses or resumes an endpoint as an operator, like the API, with an entry in the audit log. A pause by the customer or by
-- postrider becomes the operator's, and a new reason replaces the old one.
-- Locks: the endpoint, until the caller commits. postrider writes to it later then, and nothing else waits.
create function set_endpoint_status(endpoint uuid, wanted text, reason text) returns void
language plpgsql security definer set search_path = postrider, pg_temp as $$
declare
  known record;
begin
  if coalesce(btrim(reason), '') = '' then
    raise exception 'reason is required (it is recorded in the audit log)' using errcode = 'invalid_parameter_value';
  end if;
  select e.id, e.tenant_id, e.public_id, e.status, e.status_reason, e.status_by
  into known
  from endpoint e
  where e.id = set_endpoint_status.endpoint
    and e.status <> 'deleted'
  for no key update;
  if not found then
    raise exception 'the endpoint was deleted' using errcode = 'no_data_found';
  end if;
  if wanted = 'paused' and known.status = 'disabled' then
    raise exception 'endpoint % is disabled; resume it first', known.public_id
      using errcode = 'object_not_in_prerequisite_state';
  end if;
  if known.status <> wanted or wanted = 'paused' then
    update endpoint e
    set status = wanted,
        status_by = 'operator',
        status_reason = reason,
        status_since = case when e.status = wanted then e.status_since else now() end,
        breaker = case when wanted = 'active' then 'closed' else e.breaker end,
        failing_since = case when wanted = 'active' and known.status = 'disabled' then null else e.failing_since end,
        updated_at = now()
    where e.id = known.id;
  end if;
  if known.status <> wanted then
    if wanted = 'paused' then
      insert into pause_span (tenant_id, endpoint_id) values (known.tenant_id, known.id);
    else
      update pause_span p set until = now()
      where p.tenant_id = known.tenant_id and p.endpoint_id = known.id and p.until is null;
    end if;
  end if;
  perform write_audit('sql', session_user, case wanted when 'paused' then 'endpoint.pause' else 'endpoint.resume' end,
                      known.tenant_id, known.public_id,
                      jsonb_build_object('status', known.status, 'status_reason', known.status_reason),
                      jsonb_build_object('status', wanted, 'status_reason', reason), reason);
end
$$;

-- The short forms are for IDs that only one tenant uses, such as those that postrider makes.
create function pause_endpoint(endpoint text, reason text) returns void language sql
security definer set search_path = postrider, pg_temp as $$
  select postrider.set_endpoint_status(postrider.find_endpoint(endpoint), 'paused', reason)
$$;
create function pause_endpoint(tenant text, endpoint text, reason text) returns void language sql
security definer set search_path = postrider, pg_temp as $$
  select postrider.set_endpoint_status(postrider.find_endpoint(tenant, endpoint), 'paused', reason)
$$;
create function resume_endpoint(endpoint text, reason text) returns void language sql
security definer set search_path = postrider, pg_temp as $$
  select postrider.set_endpoint_status(postrider.find_endpoint(endpoint), 'active', reason)
$$;
create function resume_endpoint(tenant text, endpoint text, reason text) returns void language sql
security definer set search_path = postrider, pg_temp as $$
  select postrider.set_endpoint_status(postrider.find_endpoint(tenant, endpoint), 'active', reason)
$$;
