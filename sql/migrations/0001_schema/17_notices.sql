-- Notices to contacts, operational events, and reports of endpoint health.

-- Notices to the contacts of a tenant, one row per endpoint: a newer notice replaces one that was not sent yet.
create table notice (
  endpoint_id uuid primary key references endpoint (id),
  tenant_id text collate "C" not null,
  kind text not null check (kind in ('failing', 'paused', 'degraded', 'warning', 'disabled', 'recovered')),
  stage integer not null,
  attempts integer,                            -- since failing_since, or of kind degraded: in the last hour
  failed integer,                              -- of these
  failing_since timestamptz,
  cause text check (cause in ('failing', 'gone', 'operator')),   -- of kind disabled
  contacts text[] not null,                    -- not yet notified
  due_at timestamptz not null,
  tries integer not null default 0,
  created_at timestamptz not null default now()
);
create index notice_by_due on notice (due_at);

-- Stores a notice about the endpoint for the tenant's contacts, if there are any. It replaces one that was not sent yet.
create function put_notice(e endpoint, kind text, stage integer, cause text, attempts bigint, failed bigint) returns void
language sql set search_path = postrider, pg_temp as $$
  insert into notice (endpoint_id, tenant_id, kind, stage, attempts, failed, failing_since, cause, contacts, due_at)
  select e.id, e.tenant_id, kind, stage, attempts, failed, e.failing_since, cause, wanted.contacts,
         greatest(now(), e.notified_at + interval '1 hour')
  from (select contacts_to_notify(e.tenant_id) as contacts) as wanted
  where wanted.contacts is not null
  on conflict (endpoint_id) do update
    set kind = excluded.kind, stage = excluded.stage, attempts = excluded.attempts, failed = excluded.failed,
        failing_since = excluded.failing_since, cause = excluded.cause, contacts = excluded.contacts,
        due_at = excluded.due_at, tries = 0, created_at = now()
$$;

-- Takes the notice that has waited longest, for an hour. It marks the endpoint as notified before anything is sent, so that a
-- crash or a second node cannot cause two notices within the hour. The hour covers dead_letter_notice too. Skips the tenants in `busy`. No row: none is due. outcome:
-- send, capped (it waits for the next day), dropped (no contact is left, or the endpoint was deleted). Locks the notice and
-- its endpoint; if another transaction has locked one of them, the notice is left for a later call.
create function take_notice(busy text[], per_day integer)
returns table (outcome text, endpoint_id uuid, tenant_id text, endpoint text, url text, kind text, stage integer,
               attempts integer, failed integer, failing_since timestamptz, cause text, contacts text[], tries integer)
language plpgsql
set search_path = postrider, pg_temp as $$
#variable_conflict use_column
declare
  taken notice;
  target record;
begin
  select n.* into taken
  from notice n
  join endpoint e on e.id = n.endpoint_id
  where n.due_at <= now()
    and n.tenant_id <> all (busy)
    and (n.tries > 0 or e.notified_at is null or e.notified_at <= now() - interval '1 hour')
  order by n.due_at
  limit 1
  for update of n skip locked
  for no key update of e skip locked;
  if not found then
    return;
  end if;
  endpoint_id := taken.endpoint_id;
  tenant_id := taken.tenant_id;
  kind := taken.kind;
  stage := taken.stage;
  attempts := taken.attempts;
  failed := taken.failed;
  failing_since := taken.failing_since;
  cause := taken.cause;
  tries := taken.tries + 1;
  select e.public_id, e.url, e.status into target from endpoint e where e.id = taken.endpoint_id;
  endpoint := target.public_id;
  url := target.url;
  select array_agg(c order by place) into contacts
  from unnest(taken.contacts) with ordinality as t (c, place)
  where c = any (contacts_to_notify(taken.tenant_id));
  if contacts is null or target.status = 'deleted' then
    outcome := 'dropped';
    delete from notice n where n.endpoint_id = taken.endpoint_id;
  elsif taken.tries = 0 and not take_mail_budget('notices', taken.tenant_id, cardinality(contacts), per_day) then
    outcome := 'capped';
    update notice n set due_at = next_mail_day() where n.endpoint_id = taken.endpoint_id;
  else
    outcome := 'send';
    update notice n
    set due_at = now() + interval '1 hour', tries = taken.tries + 1
    where n.endpoint_id = taken.endpoint_id;
    update endpoint e set notified_stage = taken.stage, notified_at = now() where e.id = taken.endpoint_id;
  end if;
  return next;
end
$$;

-- ── operational events ───────────────────────────────────────────────────────────────────────────────────────────────

-- Publishes an event of the reserved tenant in the caller's transaction: event, queue rows and a row of the publish log.
-- Returns the event's public ID.
create function publish_operational_event(kind text, data json) returns text
language plpgsql set search_path = postrider, pg_temp as $$
declare
  event_id uuid := new_id('bfff');
  shown_id text := public_id_of('evt', event_id);
begin
  insert into event (id, tenant_id, type, body)
  values (event_id, 'postrider', kind,
          format('{"id":"%s","type":"%s","tenant_id":"postrider","created_at":"%s","data":%s}', shown_id, kind,
                 to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), data));
  with target as materialized (
    select distinct on (e.id) e.id as endpoint_id, e.bucket, e.ordering = 'strict' as is_strict,
           (left(replace(event_id::text, '-', ''), 20) || e.delivery_tail)::uuid as id
    from subscription s
    join endpoint e on e.id = s.endpoint_id
    where s.tenant_id = 'postrider'
      and s.pattern = any (type_patterns(kind))
      and s.enabled
      and s.versions is null
      and e.status in ('active', 'paused')
    order by e.id
  ),
  counter as (
    insert into endpoint_position as p (endpoint_id, position)
    select t.endpoint_id, 1
    from target t
    where t.is_strict
    order by t.endpoint_id
    on conflict (endpoint_id) do update
      set position = p.position + 1
    returning p.endpoint_id, p.position
  ),
  queued as (
    insert into queue (bucket, id, event_id, endpoint_id, tenant_id, position, due_at, created_at)
    select t.bucket, t.id, event_id, t.endpoint_id, 'postrider', coalesce(c.position, 0), now(), now()
    from target t
    left join counter c on c.endpoint_id = t.endpoint_id
    order by t.bucket, t.id
    returning bucket, id
  )
  insert into publish_log (node_id, first_id, last_id, buckets)
  select '00000000-0000-0000-0000-000000000000',
         first_delivery_id(event_id),
         last_delivery_id(event_id),
         array_agg(distinct q.bucket)
  from queued q
  having count(*) > 0;
  return shown_id;
end
$$;

-- ── reports of endpoint health ───────────────────────────────────────────────────────────────────────────────────────

-- Endpoints to report now, and their stage: 0 recovered, 1 failing, 2 failing for `first_after` with at least `first_failures`
-- failed attempts, 50, 70, 90, 100 disabled. None of the last four is left out, so no endpoint is disabled without a warning.
-- span: how long an endpoint may fail; time paused does not count. A degraded endpoint is not reported as failing (1) again.
create function endpoints_to_report(span interval, first_after interval, first_failures integer, at_most integer)
returns table (endpoint_id uuid, was integer, stage integer) language sql stable as $$
  select e.id, e.reported_stage, next.stage
  from postrider.endpoint e
  join postrider.tenant t on t.id = e.tenant_id
  cross join lateral (
    select coalesce(sum(least(coalesce(p.until, now()), now()) - greatest(p.since, e.failing_since)), '0')::interval as time
    from postrider.pause_span p
    where p.tenant_id = e.tenant_id
      and (p.endpoint_id = e.id or p.endpoint_id is null)
      and coalesce(p.until, now()) > e.failing_since
  ) as paused
  cross join lateral (
    select now() - e.failing_since - paused.time as time,
           100 * extract(epoch from now() - e.failing_since - paused.time) / extract(epoch from span) as percent
  ) as age
  cross join lateral (
    select case
             when e.status = 'disabled' then 100
             when e.failing_since is null then 0
             when t.status <> 'active' then null
             when e.reported_stage = 0 and e.degraded_since is null then
               case when age.percent >= 0.02 or age.time >= first_after then 1 end   -- not for short failures: after a minute and a half
             when e.reported_stage < 2 and age.time >= first_after and e.failures >= first_failures then 2
             when e.failures < 10 then null
             when e.reported_stage < 50 then case when age.percent >= 50 then 50 end
             when e.reported_stage < 70 then case when age.percent >= 70 then 70 end
             when e.reported_stage < 90 then case when age.percent >= 90 then 90 end
             when e.reported_stage < 100 then case when age.percent >= 100 then 100 end
           end as stage
  ) as next
  where ((e.status = 'active' and (e.failing_since is not null or e.reported_stage > 0))
         or (e.status = 'disabled' and e.reported_stage < 100))
    and e.tenant_id <> 'postrider'
    and next.stage is not null
  order by e.id
  limit at_most
$$;

-- Publishes an operational event about the endpoint, with these numbers.
create function publish_endpoint_event(e endpoint, kind text, numbers jsonb default '{}') returns void
language sql set search_path = postrider, pg_temp as $$
  select publish_operational_event(kind, (jsonb_build_object(
    'tenant_id', e.tenant_id, 'endpoint_id', e.public_id, 'status', e.status, 'status_reason', e.status_reason,
    'failing_since', e.failing_since, 'last_success_at', e.last_success_at) || numbers)::json)
$$;

-- Reports to operators with an operational event, and to the tenant's contacts with a notice; disables the endpoint at 100.
-- No effect if another transaction was first. Returns the event's type, endpoint.failing for stage 2, or null.
create function report_endpoint(which uuid, was integer, stage integer, span interval) returns text
language plpgsql set search_path = postrider, pg_temp as $$
declare
  e endpoint;
  kind text := case when stage = 0 then 'endpoint.recovered' when stage <= 2 then 'endpoint.failing'
                    when stage = 100 then 'endpoint.disabled' else 'endpoint.unhealthy' end;
  disables boolean;
begin
  -- An endpoint that an open transaction has locked is reported later.
  select * into e from endpoint x where x.id = which for no key update skip locked;
  if not found or e.reported_stage <> was or e.status not in ('active', 'disabled')
     or (stage = 0 and e.failing_since is not null)
     or (stage between 1 and 90 and (e.failing_since is null or e.status <> 'active')) then
    return null;
  end if;
  disables := stage = 100 and e.status = 'active';
  update endpoint x
  set reported_stage = stage,
      degraded_since = case when stage between 1 and 90 then x.degraded_since end,
      outage_ended_at = case when stage = 0 and was >= 2 then now() else x.outage_ended_at end,
      status = case when disables then 'disabled' else x.status end,
      status_by = case when disables then 'postrider' else x.status_by end,
      status_reason = case when disables then format('every attempt failed since %s',
                             to_char(e.failing_since at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"'))
                           else x.status_reason end,
      status_since = case when disables then now() else x.status_since end,
      updated_at = case when disables then now() else x.updated_at end
  where x.id = which
  returning * into e;
  if stage <> 2 then
    perform publish_endpoint_event(e, kind, jsonb_build_object(
      'percent', case when stage between 50 and 100 then stage end,
      'disabled_at', case when stage between 50 and 90 then e.failing_since + span end));
  end if;
  if (stage = 0 and e.notified_stage = 0) or (stage = 100 and e.status_by = 'customer') then
    -- They have heard nothing of the failures, or disabled it themselves.
    delete from notice n where n.endpoint_id = which;
  elsif stage <> 1 then
    perform put_notice(e,
      case stage when 0 then 'recovered' when 2 then 'failing' when 100 then 'disabled' else 'warning' end, stage,
      case when stage <> 100 then null when disables then 'failing' when e.status_by = 'postrider' then 'gone'
           else 'operator' end,
      e.failures, e.failures);
  end if;
  if disables then
    perform record_change('endpoint', e.tenant_id, which);
  end if;
  return kind;
end
$$;

-- Reports endpoints that postrider has paused (`on_rejected` = `pause`) to their contacts, once per pause. Returns how many. Index
-- endpoint_paused_by_postrider; locks the endpoints, and leaves locked ones for later.
create function report_pauses(at_most integer) returns integer language plpgsql
set search_path = postrider, pg_temp as $$
declare
  e endpoint;
  reported integer := 0;
begin
  for e in
    select *
    from endpoint x
    where x.status = 'paused'
      and x.status_by = 'postrider'
      and (x.pause_reported_at is null or x.pause_reported_at < x.status_since)
    order by x.id
    limit at_most
    for no key update skip locked
  loop
    update endpoint x set pause_reported_at = now() where x.id = e.id;
    if e.tenant_id <> 'postrider' then
      perform put_notice(e, 'paused', 2, null, e.failures, e.failures);
    end if;
    reported := reported + 1;
  end loop;
  return reported;
end
$$;
