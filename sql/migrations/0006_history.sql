-- History: what lists, searches and people who write SQL read.

-- ── indexes ────────────────────────────────────────────────────────────────────────────────────────────────────

-- Partial ones, so that the usual delivery pays only for looking at the condition.
create index attempt_canceled on attempt (delivery_id) where outcome = 'canceled';
create index attempt_replayed on attempt (event_id, delivery_id) where replay_id is not null;
create index queue_replayed on queue (event_id, id) where replay_id is not null;

-- "Everything about in_123": paid for by the events that have a subject only.
create index event_by_subject on event (subject, tenant_id, id) where subject is not null;

-- Ids given without a tenant.
create index endpoint_by_name on endpoint (public_id);
-- "Which endpoints are at hooks.example.com?"
create index endpoint_by_host on endpoint ((substring(url from '://([^/:?#]+)')));

-- ── public IDs to uuids, so that indexes are used ─────────────────────────────────────────────────────────────

create function uuid_in(outside text, prefix text) returns uuid language sql immutable strict parallel safe as $$
  select case when outside ~ ('^' || prefix || '_[0-9a-f]{32}$') then right(outside, 32)::uuid end
$$;

create function public_id_of(prefix text, id uuid) returns text language sql immutable strict parallel safe as $$
  select prefix || '_' || replace(id::text, '-', '')
$$;

create function event_id(tenant text, event text) returns uuid language sql stable
security definer set search_path = postrider, pg_temp as $$
  select coalesce((select k.event_id
                   from postrider.event_key k
                   where k.tenant_id = tenant
                     and k.kind = 'id'
                     and k.key = event),
                  postrider.uuid_in(event, 'evt'))
$$;

-- An id of the caller's own only if no other tenant has an endpoint with it; else name the tenant.
create function endpoint_id(endpoint text) returns uuid language sql stable
security definer set search_path = postrider, pg_temp as $$
  select coalesce(postrider.uuid_in(endpoint, 'ep'),
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
  select postrider.uuid_in(delivery, 'dlv')
$$;

-- The delivery ids of an event lie between these two, but for replays.
create function first_delivery_id(event uuid) returns uuid language sql immutable strict parallel safe as $$
  select (left(replace(event::text, '-', ''), 20) || '000000000000')::uuid
$$;
create function last_delivery_id(event uuid) returns uuid language sql immutable strict parallel safe as $$
  select (left(replace(event::text, '-', ''), 20) || 'ffffffffffff')::uuid
$$;

-- Which row of an event (id, main_id, version of its main row) a subscription gets that names these versions; null: none.
-- The order is that of publishing: the default, then the others as they were ranked.
create function version_for(event uuid, main uuid, version text, wanted text[]) returns uuid language sql stable
set search_path = postrider, pg_temp as $$
  select case
           when main is null then case when wanted is null or version = any (wanted) then event end
           when wanted is null then event
           else (select v.id
                 from event v
                 where v.id >= first_delivery_id(version_for.event)
                   and v.id <= last_delivery_id(version_for.event)
                   and v.version = any (wanted)
                 order by v.id < version_for.event, v.id
                 limit 1)
         end
$$;

-- ── what is being sent ─────────────────────────────────────────────────────────────────────────────────────────

-- What each node has been sending for a second or longer, as it said within the last second or two: nobody else knows.
-- Written outside of settle and only when it changed. Logged, so that the views can be read on a standby, too.
create table node_in_flight (
  node_id uuid primary key references node on delete cascade,
  delivery_ids uuid[] not null,
  buckets integer[] not null,                        -- of each
  changed_at timestamptz not null default now()
) with (fillfactor = 50);

-- Of nodes that are alive, as far as the buckets are still theirs.
create view in_flight as
select sent.id, sent.bucket, f.node_id
from node_in_flight f
join node n on n.id = f.node_id and n.alive
cross join unnest(f.delivery_ids, f.buckets) as sent (id, bucket)
join bucket_lease l on l.bucket = sent.bucket and l.owner = f.node_id;

-- ── views ──────────────────────────────────────────────────────────────────────────────────────────────────────

-- Each has its uuids, which indexes know, and beside them the public IDs, for people. None has secrets, custom
-- headers or payloads.

create view webhook_endpoints as
select e.id, e.public_id as endpoint, e.tenant_id, e.url, e.description, e.status, e.status_reason, e.status_since,
       e.status_by, e.held_reason, e.held_since,
       case when e.failing_since is null then 'healthy'
            when e.failing_since < now() - interval '60 hours' and tried.count >= 10 then 'unhealthy'
            else 'failing' end as health, e.failing_since,
       e.last_success_at, e.last_failure_at, e.breaker, e.last_probe_at, e.last_probe_error, e.max_attempts, e.timeout_ms, e.give_up_seconds,
       e.max_in_flight, e.rate_per_second, e.ordering, e.retry_schedule, e.on_rejected, e.signature, e.metadata,
       e.created_at, e.updated_at
from endpoint e
left join lateral (
  -- As attempts_since(): of the newest 100, and only for those that may be unhealthy.
  select count(*)
  from (
    select a.started_at
    from attempt a
    where a.endpoint_id = e.id
      and a.attempt > 0
      and e.failing_since < now() - interval '60 hours'
    order by a.delivery_id desc
    limit 100
  ) newest
  where newest.started_at >= e.failing_since
) tried on true;

create view webhook_subscriptions as
select s.endpoint_id, e.public_id as endpoint, s.tenant_id, s.pattern as event_type, s.enabled, s.versions, e.status,
       e.url, s.created_at
from subscription s
join endpoint e on e.id = s.endpoint_id;

create view webhook_events as
select e.id, coalesce(e.public_id, public_id_of('evt', e.id)) as event, e.tenant_id, e.type, e.version, e.subject,
       octet_length(e.body) as body_bytes, e.created_at
from event e;

-- What is in the queue, and what has ended: an attempt that is not followed by another.
create view webhook_deliveries as
select q.id, q.tenant_id, q.endpoint_id, q.event_id, e.type as event_type, p.url,
       case when f.id is not null then 'processing' when q.attempts = 0 then 'pending' else 'retrying' end as status, q.attempts, p.max_attempts,
       q.due_at as available_at, public_id_of('node', l.owner) as claimed_by, null::timestamptz as lease_expires_at,
       last.started_at as last_attempt_at, last.status_code as last_status_code,
       coalesce(last.error_detail, last.error) as last_error, null::timestamptz as delivered_at, q.created_at,
       q.replay_id, public_id_of('dlv', q.id) as delivery, p.public_id as endpoint,
       coalesce(e.public_id, public_id_of('evt', q.event_id)) as event
from bucket_lease l
join queue q on q.bucket = l.bucket
left join in_flight f on f.bucket = q.bucket and f.id = q.id
left join event e on e.id = q.event_id
left join endpoint p on p.id = q.endpoint_id
left join lateral (
  select a.started_at, a.status_code, a.error, a.error_detail
  from attempt a
  where a.delivery_id = q.id
  order by a.attempt desc
  limit 1
) last on true
union all
select a.delivery_id, a.tenant_id, a.endpoint_id, a.event_id, e.type, p.url, a.outcome,
       case when a.attempt > 0 then a.attempt
            else (select max(b.attempt) from attempt b where b.delivery_id = a.delivery_id) end,
       p.max_attempts, null, null, null, a.started_at, a.status_code, coalesce(a.error_detail, a.error),
       case when a.outcome = 'delivered' then a.started_at + a.total_us * interval '1 microsecond' end, a.created_at,
       a.replay_id, public_id_of('dlv', a.delivery_id), p.public_id,
       coalesce(e.public_id, public_id_of('evt', a.event_id))
from attempt a
left join event e on e.id = a.event_id
left join endpoint p on p.id = a.endpoint_id
where a.outcome <> 'retrying';

-- The deliveries of one event, replays included: found by their ids, which begin like the event's, so in one partition.
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

create view webhook_delivery_attempts as
select a.delivery_id, a.attempt, a.tenant_id, a.endpoint_id, a.event_id, a.outcome, a.status_code, a.error,
       a.error_detail, a.started_at, a.dns_us, a.connect_us, a.tls_us, a.first_byte_us, a.total_us,
       a.preview as response_preview, a.address, a.next_attempt_at, a.node_id, a.created_at, a.replay_id,
       public_id_of('dlv', a.delivery_id) as delivery, p.public_id as endpoint
from attempt a
left join endpoint p on p.id = a.endpoint_id;

create view webhook_dead_letters as
select d.delivery_id, d.tenant_id, d.endpoint_id, d.event_id, e.type as event_type, p.url, d.cause, d.attempts,
       d.status_code, d.error, d.error_detail, d.created_at, d.dead_at, d.resolved_at, d.resolution,
       public_id_of('dlv', d.delivery_id) as delivery, p.public_id as endpoint,
       coalesce(e.public_id, public_id_of('evt', d.event_id)) as event
from dead_letter d
left join event e on e.id = d.event_id
left join endpoint p on p.id = d.endpoint_id;

-- ── functions for people ───────────────────────────────────────────────────────────────────────────────────────

-- How many of an endpoint's newest 100 attempts began at that time or later. A function, because its plan over all
-- days of `attempt` costs milliseconds, and few endpoints need it.
create function attempts_since(endpoint uuid, since timestamptz) returns integer language plpgsql stable
set search_path = postrider, pg_temp as $$
begin
  return (
    select count(*)
    from (
      select a.started_at
      from attempt a
      where a.endpoint_id = endpoint and a.attempt > 0
      order by a.delivery_id desc
      limit 100
    ) as newest
    where newest.started_at >= since
  );
end
$$;

-- "Which endpoints receive invoice.paid?", wildcards included; those that would get it if they were active, too.
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

-- The endpoint that a person names, without or with its tenant; an error if there is none, or more than one.
create function known_endpoint(endpoint text) returns uuid
language plpgsql stable set search_path = postrider, pg_temp as $$
declare
  ids uuid[];
  tenants text[];
begin
  select array_agg(e.id), array_agg(e.tenant_id order by e.tenant_id)
  into ids, tenants
  from endpoint e
  where (e.id = postrider.uuid_in(known_endpoint.endpoint, 'ep') or e.public_id = known_endpoint.endpoint)
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
create function known_endpoint(tenant text, endpoint text) returns uuid
language plpgsql stable set search_path = postrider, pg_temp as $$
declare
  id uuid;
begin
  select e.id into id
  from endpoint e
  where e.tenant_id = tenant
    and e.public_id = known_endpoint.endpoint
    and e.status <> 'deleted';
  if not found then
    raise exception 'endpoint % of tenant % does not exist', endpoint, tenant using errcode = 'no_data_found';
  end if;
  return id;
end
$$;

-- Pauses or resumes an endpoint as an operator, as the API does; who and why is in the audit log. A pause by the customer
-- or by postrider becomes the operator's, and a new reason replaces the old one.
-- Locks: the endpoint, until the caller commits; what postrider itself writes there meanwhile is left until later, and
-- nothing else waits.
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
  insert into requested_change (kind, tenant_id, endpoint_id) values ('endpoint', known.tenant_id, known.id);
end
$$;

-- The short forms are for IDs that one tenant only uses, such as those that postrider makes.
create function pause_endpoint(endpoint text, reason text) returns void language sql
security definer set search_path = postrider, pg_temp as $$
  select postrider.set_endpoint_status(postrider.known_endpoint(endpoint), 'paused', reason)
$$;
create function pause_endpoint(tenant text, endpoint text, reason text) returns void language sql
security definer set search_path = postrider, pg_temp as $$
  select postrider.set_endpoint_status(postrider.known_endpoint(tenant, endpoint), 'paused', reason)
$$;
create function resume_endpoint(endpoint text, reason text) returns void language sql
security definer set search_path = postrider, pg_temp as $$
  select postrider.set_endpoint_status(postrider.known_endpoint(endpoint), 'active', reason)
$$;
create function resume_endpoint(tenant text, endpoint text, reason text) returns void language sql
security definer set search_path = postrider, pg_temp as $$
  select postrider.set_endpoint_status(postrider.known_endpoint(tenant, endpoint), 'active', reason)
$$;

-- ── what endpoints were when an event was published ────────────────────────────────────────────────────────────

-- Times during which an endpoint was disabled; until null: it is.
create table disabled_span (
  id bigint generated always as identity primary key,
  endpoint_id uuid not null,
  since timestamptz not null default now(),
  until timestamptz
);
create index disabled_span_by_endpoint on disabled_span (endpoint_id);
create index disabled_span_ended on disabled_span (until) where until is not null;

create function keep_disabled_span() returns trigger language plpgsql set search_path = postrider, pg_temp as $$
begin
  if new.status = 'disabled' then
    insert into disabled_span (endpoint_id) values (new.id);
  else
    update disabled_span s set until = now() where s.endpoint_id = new.id and s.until is null;
  end if;
  return null;
end
$$;
create trigger endpoint_disabled after update of status on endpoint
  for each row when ((old.status = 'disabled') <> (new.status = 'disabled')) execute function keep_disabled_span();

-- Earlier states of subscriptions; the current one is in `subscription`, since its `since`.
alter table subscription add column since timestamptz not null default now();
create table subscription_span (
  id bigint generated always as identity primary key,
  endpoint_id uuid not null,
  pattern text collate "C" not null,
  enabled boolean not null,
  versions text[],
  since timestamptz not null,
  until timestamptz not null default now()
);
create index subscription_span_by_endpoint on subscription_span (endpoint_id, pattern);
create index subscription_span_ended on subscription_span (until);

create function keep_subscription_span() returns trigger language plpgsql set search_path = postrider, pg_temp as $$
begin
  insert into subscription_span (endpoint_id, pattern, enabled, versions, since)
  values (old.endpoint_id, old.pattern, old.enabled, old.versions, old.since);
  if tg_op = 'DELETE' then
    return old;
  end if;
  new.since := now();
  return new;
end
$$;
create trigger subscription_changed before update on subscription
  for each row when ((old.enabled, old.versions) is distinct from (new.enabled, new.versions))
  execute function keep_subscription_span();
create trigger subscription_deleted before delete on subscription
  for each row execute function keep_subscription_span();

-- ── dead letters, counted ──────────────────────────────────────────────────────────────────────────────────────

-- How many are unresolved, by tenant, endpoint and cause. Changes are appended and added up by upkeep, so that two
-- transactions never wait for each other here; the sum of both tables is right at any time.
create table dead_letter_count (
  tenant_id text collate "C" not null,
  endpoint_id uuid not null,
  cause text collate "C" not null,
  unresolved bigint not null,
  primary key (tenant_id, endpoint_id, cause)
);
create index dead_letter_count_by_size on dead_letter_count (unresolved desc);
create table dead_letter_delta (
  tenant_id text collate "C" not null,
  endpoint_id uuid not null,
  cause text collate "C" not null,
  unresolved bigint not null
);

create function count_new_dead_letters() returns trigger language plpgsql set search_path = postrider, pg_temp as $$
begin
  insert into dead_letter_delta (tenant_id, endpoint_id, cause, unresolved)
  select tenant_id, endpoint_id, cause, count(*)
  from fresh
  where resolved_at is null
  group by tenant_id, endpoint_id, cause;
  return null;
end
$$;
create function count_resolved_dead_letters() returns trigger language plpgsql
set search_path = postrider, pg_temp as $$
begin
  insert into dead_letter_delta (tenant_id, endpoint_id, cause, unresolved)
  select tenant_id, endpoint_id, cause, sum(change)
  from (
    select tenant_id, endpoint_id, cause, 1 as change from fresh where resolved_at is null
    union all
    select tenant_id, endpoint_id, cause, -1 from stale where resolved_at is null
  ) as changes
  group by tenant_id, endpoint_id, cause
  having sum(change) <> 0;
  return null;
end
$$;
create trigger dead_letter_made after insert on dead_letter
referencing new table as fresh for each statement execute function count_new_dead_letters();
create trigger dead_letter_resolved after update on dead_letter
referencing old table as stale new table as fresh for each statement execute function count_resolved_dead_letters();

-- ── rollups ────────────────────────────────────────────────────────────────────────────────────────────────────

-- What became of deliveries by the hour in which the attempt began. A node adds up in memory and writes its own rows
-- every 10 seconds; some minutes after an hour is over it is computed anew from attempt, under the node 0, and closed.
create table rollup (
  hour timestamptz not null,
  tenant_id text collate "C" not null,
  endpoint_id uuid not null,
  event_type text collate "C" not null,
  node_id uuid not null,
  delivered bigint not null default 0,
  delivered_attempts bigint not null default 0,      -- that they took
  first_attempt_successes bigint not null default 0,
  retried bigint not null default 0,                 -- attempts that failed and are tried again
  dead bigint not null default 0,
  dead_attempts bigint not null default 0,
  canceled bigint not null default 0,
  exchanges bigint not null default 0,
  latency_us bigint not null default 0,              -- of all exchanges together
  latency_us_max bigint not null default 0,
  primary key (hour, tenant_id, endpoint_id, event_type, node_id)
) with (fillfactor = 70);
create index rollup_by_endpoint on rollup (endpoint_id, hour);
create index rollup_by_tenant on rollup (tenant_id, hour);

create table rollup_closed (
  hour timestamptz primary key,
  closed_at timestamptz not null default now()
);

-- To compute an hour anew its attempts are found by time. They are appended in that order, so this index is tiny and
-- costs nothing to keep.
create index attempt_by_time on attempt using brin (started_at) with (pages_per_range = 16, autosummarize = on);

create view webhook_health as
select r.hour, r.tenant_id, kind.status, sum(kind.count)::bigint as delivery_count,
       round(sum(kind.attempts)::numeric / nullif(sum(kind.count), 0), 3) as avg_attempts,
       sum(kind.first_attempt_successes)::bigint as first_attempt_successes
from rollup r
cross join lateral (
  values ('delivered', r.delivered, r.delivered_attempts, r.first_attempt_successes),
         ('dead_letter', r.dead, r.dead_attempts, 0),
         ('canceled', r.canceled, 0, 0)
) as kind (status, count, attempts, first_attempt_successes)
where kind.count > 0
group by r.hour, r.tenant_id, kind.status;

-- ── brakes ─────────────────────────────────────────────────────────────────────────────────────────────────────

-- For incidents; of the whole cluster. Nodes hear of a change through the control log.
create table brakes (
  singleton boolean primary key default true check (singleton),
  is_paused boolean not null default false,          -- nothing is sent
  retry_rate_per_second double precision check (retry_rate_per_second > 0),
  drain_rate_per_second double precision check (drain_rate_per_second > 0),
  reason text,
  changed_by text,
  changed_at timestamptz
);
insert into brakes default values;

-- ── the role for people who help customers ─────────────────────────────────────────────────────────────────────

revoke execute on function set_endpoint_status, event_id, endpoints_for, deliveries_of,
  endpoint_id(text), endpoint_id(text, text), known_endpoint(text), known_endpoint(text, text),
  pause_endpoint(text, text), pause_endpoint(text, text, text),
  resume_endpoint(text, text), resume_endpoint(text, text, text) from public;

-- Views, look-ups, pause, resume and replay; no table, so no secret. Called again by later migrations and by an
-- administrator who made the role where postrider may not.
create function grant_support() returns void language plpgsql as $$
declare
  name text;
begin
  if not exists (select from pg_roles where rolname = 'postrider_support') then
    begin
      create role postrider_support nologin;
    exception
      when insufficient_privilege then
        raise notice 'the role postrider_support is missing, and this user may not make it';
        return;
      when duplicate_object or unique_violation then
        null;
    end;
  end if;
  grant usage on schema postrider to postrider_support;
  for name in select c.relname from pg_class c
              where c.relnamespace = 'postrider'::regnamespace and c.relkind = 'v' and c.relname like 'webhook\_%' loop
    execute format('grant select on postrider.%I to postrider_support', name);
  end loop;
  for name in select p.oid::regprocedure::text from pg_proc p
              where p.pronamespace = 'postrider'::regnamespace
                and p.proname in ('pause_endpoint', 'resume_endpoint', 'endpoints_for', 'replay_delivery', 'event_id',
                                  'endpoint_id', 'delivery_id', 'deliveries_of') loop
    execute 'grant execute on function ' || name || ' to postrider_support';
  end loop;
end
$$;

select grant_support();
