-- Replays, endpoint health and who is told of it, retention and erasure.

-- ── ids made by SQL ────────────────────────────────────────────────────────────────────────────────────────────

-- Where a node's ids have its slot (up to 8191), these have one that no node ever gets: bffe for deliveries of replays
-- and for the replays themselves, bfff for operational events. The outbox counts through the slots from 8192 on; to begin
-- like one of these, one of its ids would have to be made in the same millisecond with the same 25 bits.
create sequence id_sequence as integer minvalue 0 maxvalue 4095 cycle;

-- A time-ordered id by the database's clock: 48 bits of milliseconds, 12 of sequence, the slot, 48 random.
create function make_id(slot text default 'bffe') returns uuid language sql volatile as $$
  select (lpad(to_hex(floor(extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0')
          || '7' || lpad(to_hex(nextval('postrider.id_sequence')), 3, '0')
          || slot
          || left(replace(gen_random_uuid()::text, '-', ''), 12))::uuid
$$;

-- Every subscription pattern that matches the type: itself, each prefix ending in .*, and *.
create function type_patterns(type text) returns text[] language sql immutable strict parallel safe as $$
  select array_agg(pattern)
  from (
    select type as pattern
    union all
    select '*'
    union all
    select array_to_string(part[1:depth], '.') || '.*'
    from string_to_array(type, '.') as part,
         generate_series(1, cardinality(part) - 1) as depth
  ) as patterns
$$;

-- ── replays ────────────────────────────────────────────────────────────────────────────────────────────────────

create table replay (
  id uuid primary key,
  tenant_id text collate "C" not null references tenant (id),
  kind text not null check (kind in ('delivery', 'range')),
  status text not null check (status in ('queued', 'running', 'completed', 'canceled')),
  reason text not null,
  requested_by text not null,                  -- 'key_…', or 'sql:' and the role
  delivery_id uuid,                            -- kind delivery: the one that is sent again
  scope text check (scope in ('failed', 'missing', 'all')),   -- kind range, as all that follows
  endpoint_id uuid,                            -- null: all
  event_types text[],                          -- patterns; null: all
  causes text[],                               -- of dead letters; null: all
  delivery_ids uuid[],                         -- only these dead letters; null: all
  since timestamptz,
  until timestamptz,
  rate_per_second double precision,
  is_counted boolean not null default false,   -- first it is counted what matches, then it is queued
  matched bigint not null default 0,
  queued bigint not null default 0,
  after_id uuid,                               -- how far the present pass is: dead letters by delivery id,
  after_endpoint uuid,                         -- events by their id and then the endpoint
  runner uuid,                                 -- the node that works on it
  lease_until timestamptz,                     -- by the database's clock; then others may take it
  created_at timestamptz not null default now(),
  started_at timestamptz,
  finished_at timestamptz
) with (fillfactor = 50);
create index replay_by_tenant on replay (tenant_id, id);
create index replay_unfinished on replay (tenant_id, id) where status in ('queued', 'running');
create unique index replay_running on replay (tenant_id) where status = 'running';
create index replay_by_requester on replay (requested_by, created_at) where kind = 'delivery';

-- Which delivery was made by which replay, and from which; so a replayed delivery is found by its event, and what is
-- missing is replayed once. Goes with its event.
create table replayed (
  event_id uuid not null,
  endpoint_id uuid not null,
  delivery_id uuid not null,
  origin_id uuid,                              -- null: the event had no delivery for the endpoint
  replay_id uuid not null,
  primary key (event_id, endpoint_id, delivery_id)
);
create index replayed_by_replay on replayed (replay_id, delivery_id);

-- How the deliveries of a replay ended, counted as they are settled. A bucket is served by one shard, so two
-- settles do not wait for each other here.
create table replay_progress (
  replay_id uuid not null,
  bucket integer not null,
  delivered bigint not null default 0,
  failed bigint not null default 0,
  canceled bigint not null default 0,
  primary key (replay_id, bucket)
) with (fillfactor = 50);

-- How far a `postrider outbox refanout` is. One row per range and place that it reads from; the run that is asked for the
-- same again goes on behind it.
create table refanout (
  since timestamptz not null,
  until timestamptz not null,
  tenant_id text collate "C" not null default '',   -- '': all
  place text not null,                              -- events, outbox:<id>, archive:<file>
  after_id uuid,                                    -- events: the last one that was looked at,
  after_endpoint uuid,                              -- and which of its endpoints
  after_time timestamptz,                           -- an outbox: processed_at and number of the last row
  after_row bigint not null default 0,              -- an archive: lines
  looked_at bigint not null default 0,
  queued bigint not null default 0,                 -- of an outbox: rows handed to the relay again
  started_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  finished_at timestamptz,
  primary key (since, until, tenant_id, place)
) with (fillfactor = 50);

-- When the payload was erased; its body is then empty, and nothing of it is sent any more.
alter table event add column erased_at timestamptz;

-- Makes a new delivery of the same event from an old one; the one place where this is done, for the API and for SQL.
--   wanted_tenant null: any tenant (SQL); per_second_max null: no limit
-- Returns one row. outcome: made, unknown_delivery, endpoint_inactive, event_gone, event_erased, too_fast.
-- Locks: the event against erasure; the position of a strict endpoint, until commit.
create function make_replay(wanted_tenant text, wanted uuid, why text, who text, due timestamptz,
                            per_second_max integer default null)
returns table (outcome text, replay_id uuid, delivery_id uuid, tenant_id text)
language plpgsql set search_path = postrider, pg_temp as $$
#variable_conflict use_column
declare
  old record;
  target record;
  gone record;
  place bigint := 0;
begin
  select d.event_id, d.endpoint_id, d.tenant_id
  into old
  from (
    select q.event_id, q.endpoint_id, q.tenant_id
    from bucket_lease l
    join queue q on q.bucket = l.bucket and q.id = wanted
    union all
    select a.event_id, a.endpoint_id, a.tenant_id
    from attempt a
    where a.delivery_id = wanted
    union all
    select d.event_id, d.endpoint_id, d.tenant_id
    from dead_letter d
    where d.delivery_id = wanted
  ) as d
  limit 1;
  if not found or old.tenant_id <> wanted_tenant then
    return query select 'unknown_delivery', null::uuid, null::uuid, null::text;
    return;
  end if;

  if per_second_max is not null then
    perform pg_advisory_xact_lock(hashtextextended('postrider.replay.' || who, 0));
    if (select count(*)
        from replay r
        where r.kind = 'delivery'
          and r.requested_by = who
          and r.created_at > clock_timestamp() - interval '1 second') >= per_second_max then
      return query select 'too_fast', null::uuid, null::uuid, null::text;
      return;
    end if;
  end if;

  select e.bucket, e.status, e.ordering into target from endpoint e where e.id = old.endpoint_id;
  if not found or target.status not in ('active', 'paused') then
    return query select 'endpoint_inactive', null::uuid, null::uuid, null::text;
    return;
  end if;
  select e.erased_at into gone from event e where e.id = old.event_id for share;
  if not found or id_time(old.event_id) < (select k.since from kept_since k where k.name = 'events') then
    return query select 'event_gone', null::uuid, null::uuid, null::text;
    return;
  elsif gone.erased_at is not null then
    return query select 'event_erased', null::uuid, null::uuid, null::text;
    return;
  end if;

  replay_id := make_id();
  delivery_id := make_id();
  outcome := 'made';
  tenant_id := old.tenant_id;
  insert into replay (id, tenant_id, kind, status, reason, requested_by, delivery_id, is_counted, matched, queued,
                      created_at, started_at, finished_at)
  values (make_replay.replay_id, old.tenant_id, 'delivery', 'completed', why, who, wanted, true, 1, 1,
          clock_timestamp(), now(), now());
  insert into replayed (event_id, endpoint_id, delivery_id, origin_id, replay_id)
  values (old.event_id, old.endpoint_id, make_replay.delivery_id, wanted, make_replay.replay_id);
  update dead_letter d
  set resolved_at = now(),
      resolution = 'replayed'
  where d.delivery_id = wanted
    and d.bucket = target.bucket
    and d.resolved_at is null;
  if target.ordering = 'strict' then
    insert into endpoint_position as p (endpoint_id, position)
    values (old.endpoint_id, 1)
    on conflict (endpoint_id) do update
      set position = p.position + 1
    returning p.position into place;
  end if;
  -- The time to give up counts from when it may be sent.
  insert into queue (bucket, id, event_id, endpoint_id, tenant_id, position, due_at, created_at, replay_id)
  values (target.bucket, make_replay.delivery_id, old.event_id, old.endpoint_id, old.tenant_id, place,
          greatest(due, now()), greatest(due, now()), make_replay.replay_id);
  -- Nobody hands it over in memory: its owner fetches it.
  insert into publish_log (node_id, first_id, last_id, buckets)
  values ('00000000-0000-0000-0000-000000000000', make_replay.delivery_id, make_replay.delivery_id,
          array[target.bucket]);
  return next;
end
$$;

-- For SQL users: sends a delivery again, as a new delivery of the same event. Returns its id.
create function replay_delivery(delivery text, reason text, not_before timestamptz default now())
returns text language plpgsql security definer set search_path = postrider, pg_temp as $$
declare
  made record;
begin
  if delivery !~ '^dlv_[0-9a-f]{32}$' then
    raise exception '"%" is not the id of a delivery', delivery
      using errcode = 'invalid_parameter_value', hint = 'It begins with dlv_ and has 32 hex digits behind that.';
  end if;
  if coalesce(btrim(reason), '') = '' or octet_length(reason) > 1000 then
    raise exception 'a replay needs a reason of up to 1,000 bytes' using errcode = 'invalid_parameter_value';
  end if;
  if not_before > now() + interval '30 days' then
    raise exception 'not_before may be at most 30 days from now' using errcode = 'invalid_parameter_value';
  end if;
  select m.outcome, m.replay_id, m.delivery_id, m.tenant_id
  into made
  from make_replay(null, substr(delivery, 5)::uuid, reason, 'sql:' || session_user, coalesce(not_before, now())) as m;
  case made.outcome
    when 'made' then
      perform write_audit('sql', session_user, 'delivery.replay', made.tenant_id, delivery,
                          after => jsonb_build_object('delivery_id', outside_of('dlv', made.delivery_id),
                                                      'replay_id', outside_of('rpl', made.replay_id)),
                          reason => reason);
      return 'dlv_' || replace(made.delivery_id::text, '-', '');
    when 'unknown_delivery' then
      raise exception 'there is no delivery %', delivery using errcode = 'no_data_found';
    when 'endpoint_inactive' then
      raise exception 'the endpoint of delivery % is disabled or deleted', delivery
        using errcode = 'object_not_in_prerequisite_state', hint = 'Resume the endpoint first.';
    when 'event_erased' then
      raise exception 'the payload of the event of delivery % was erased', delivery
        using errcode = 'object_not_in_prerequisite_state';
    else
      raise exception 'the event of delivery % is past its retention', delivery
        using errcode = 'object_not_in_prerequisite_state';
  end case;
end
$$;
revoke all on function replay_delivery(text, text, timestamptz) from public;

-- ── operational events ─────────────────────────────────────────────────────────────────────────────────────────

-- The reserved tenant: its events tell operators what happens to other tenants' endpoints. Any endpoint of it can
-- subscribe; nobody but postrider publishes to it, and nothing is told about it.
insert into tenant (id, name) values ('postrider', 'postrider itself');

-- Publishes to the reserved tenant, in the caller's transaction: event, queue rows, line in the publish log. Returns the
-- event's id as everybody knows it.
create function operational_event(kind text, data json) returns text
language plpgsql set search_path = postrider, pg_temp as $$
declare
  made uuid := make_id('bfff');
  shown text := 'evt_' || replace(made::text, '-', '');
begin
  insert into event (id, tenant_id, type, body)
  values (made, 'postrider', kind,
          format('{"id":"%s","type":"%s","tenant_id":"postrider","created_at":"%s","data":%s}', shown, kind,
                 to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), data));
  with target as materialized (
    select distinct on (e.id) e.id as endpoint_id, e.bucket, e.ordering = 'strict' as is_strict,
           (left(replace(made::text, '-', ''), 20) || e.delivery_tail)::uuid as id
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
    select t.bucket, t.id, made, t.endpoint_id, 'postrider', coalesce(c.position, 0), now(), now()
    from target t
    left join counter c on c.endpoint_id = t.endpoint_id
    order by t.bucket, t.id
    returning bucket, id
  )
  insert into publish_log (node_id, first_id, last_id, buckets)
  select '00000000-0000-0000-0000-000000000000',
         (left(replace(made::text, '-', ''), 20) || repeat('0', 12))::uuid,
         (left(replace(made::text, '-', ''), 20) || repeat('f', 12))::uuid,
         array_agg(distinct q.bucket)
  from queued q
  having count(*) > 0;
  return shown;
end
$$;

-- ── endpoint health ────────────────────────────────────────────────────────────────────────────────────────────

alter table endpoint
  add column failures integer not null default 0,   -- exchanges that failed since failing_since, counted up to 10
  add column reported integer not null default 0,   -- what operators were told: 0 nothing, 1 failing, 50, 70, 90 percent
                                                    -- of the time to its end, 100 disabled
  add column told integer not null default 0,       -- the same of the customer's contacts
  add column told_at timestamptz;                   -- at most one notice an hour
create index endpoint_to_report on endpoint (id)
  where (status = 'active' and (failing_since is not null or reported > 0)) or (status = 'disabled' and reported < 100);

-- Dead letters by endpoint and minute, until they are told; written with the dead letters themselves.
create table dead_letter_minute (
  endpoint_id uuid not null,
  minute timestamptz not null,
  cause text not null,
  letters bigint not null,
  primary key (endpoint_id, minute, cause)
) with (fillfactor = 70);
create index dead_letter_minute_by_time on dead_letter_minute (minute);

-- What a tenant's contacts are to be told; one row per endpoint: what is newer replaces what was not told yet.
create table notice (
  endpoint_id uuid primary key references endpoint (id),
  tenant_id text collate "C" not null,
  kind text not null check (kind in ('warning', 'disabled', 'recovered')),
  stage integer not null,
  failing_since timestamptz,
  detail text,
  contacts jsonb not null,                     -- those who are still to be told
  due_at timestamptz not null,
  tries integer not null default 0,
  created_at timestamptz not null default now()
);
create index notice_by_due on notice (due_at);

-- Signs notices to URLs; one per tenant, shown when it is made.
create table contact_secret (
  tenant_id text collate "C" primary key references tenant (id),
  sealed bytea not null,
  created_at timestamptz not null default now()
);

-- Which endpoints are to be reported now, and as what: 0 recovered, 1 failing, 50, 70, 90, 100 disabled. A stage is
-- never left out, so nobody is disabled unwarned. span: how long nothing but failure may last; time paused does not count.
create function endpoints_to_report(span interval, at_most integer)
returns table (endpoint_id uuid, was integer, stage integer) language sql stable as $$
  select e.id, e.reported, next.stage
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
    select 100 * extract(epoch from now() - e.failing_since - paused.time) / extract(epoch from span) as percent
  ) as age
  cross join lateral (
    select case
             when e.status = 'disabled' then 100
             when e.failing_since is null then 0
             when t.status <> 'active' then null
             when e.reported = 0 then case when age.percent >= 0.02 then 1 end   -- not every hiccup: a minute and a half
             when e.failures < 10 then null
             when e.reported < 50 then case when age.percent >= 50 then 50 end
             when e.reported < 70 then case when age.percent >= 70 then 70 end
             when e.reported < 90 then case when age.percent >= 90 then 90 end
             when e.reported < 100 then case when age.percent >= 100 then 100 end
           end as stage
  ) as next
  where ((e.status = 'active' and (e.failing_since is not null or e.reported > 0))
         or (e.status = 'disabled' and e.reported < 100))
    and e.tenant_id <> 'postrider'
    and next.stage is not null
  order by e.id
  limit at_most
$$;

-- Tells operators, by an operational event, and the tenant's contacts, by a notice; disables at 100. Zero effect if
-- somebody else was first. Returns the event's type, or null.
create function report_endpoint(which uuid, was integer, stage integer, span interval) returns text
language plpgsql set search_path = postrider, pg_temp as $$
declare
  e endpoint;
  contacts jsonb;
  kind text := case stage when 0 then 'endpoint.recovered' when 1 then 'endpoint.failing' when 100 then 'endpoint.disabled'
                          else 'endpoint.unhealthy' end;
  disables boolean;
begin
  select * into e from endpoint x where x.id = which for no key update;
  if not found or e.reported <> was or e.status not in ('active', 'disabled')
     or (stage = 0 and e.failing_since is not null)
     or (stage between 1 and 90 and (e.failing_since is null or e.status <> 'active')) then
    return null;
  end if;
  disables := stage = 100 and e.status = 'active';
  update endpoint x
  set reported = stage,
      status = case when disables then 'disabled' else x.status end,
      status_by = case when disables then 'postrider' else x.status_by end,
      status_reason = case when disables then format('every attempt failed since %s',
                             to_char(e.failing_since at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"'))
                           else x.status_reason end,
      status_since = case when disables then now() else x.status_since end,
      updated_at = case when disables then now() else x.updated_at end
  where x.id = which
  returning * into e;
  perform operational_event(kind, json_build_object(
    'tenant_id', e.tenant_id, 'endpoint_id', e.outside_id, 'status', e.status, 'status_reason', e.status_reason,
    'failing_since', e.failing_since, 'last_success_at', e.last_success_at,
    'percent', case when stage between 50 and 100 then stage end,
    'disabled_at', case when stage between 50 and 90 then e.failing_since + span end));

  select t.contacts into contacts from tenant t where t.id = e.tenant_id;
  if stage = 0 and e.told = 0 then
    delete from notice n where n.endpoint_id = which;
  elsif stage <> 1 and jsonb_typeof(contacts) = 'array' and jsonb_array_length(contacts) > 0 then
    insert into notice (endpoint_id, tenant_id, kind, stage, failing_since, detail, contacts, due_at)
    values (which, e.tenant_id,
            case stage when 0 then 'recovered' when 100 then 'disabled' else 'warning' end,
            stage, e.failing_since, e.status_reason, contacts, greatest(now(), e.told_at + interval '1 hour'))
    on conflict (endpoint_id) do update
      set kind = excluded.kind, stage = excluded.stage, failing_since = excluded.failing_since,
          detail = excluded.detail, contacts = excluded.contacts, tries = 0, created_at = now();
  end if;
  if disables then
    perform note_change('endpoint', e.tenant_id, which);
  end if;
  return kind;
end
$$;

-- Tells operators of the dead letters of minutes that are over, one event per endpoint and minute; some at a time.
-- Returns how many events.
create function report_dead_letters(at_most integer) returns integer
language plpgsql set search_path = postrider, pg_temp as $$
declare
  told record;
  events integer := 0;
begin
  for told in
    with taken as (
      select m.endpoint_id, m.minute, m.cause
      from dead_letter_minute m
      where m.minute < date_trunc('minute', now())
      order by m.minute
      limit at_most
      for update skip locked
    ),
    gone as (
      delete from dead_letter_minute m
      using taken t
      where m.endpoint_id = t.endpoint_id
        and m.minute = t.minute
        and m.cause = t.cause
      returning m.endpoint_id, m.minute, m.cause, m.letters
    )
    select e.tenant_id, e.outside_id, g.minute, sum(g.letters) as letters, json_object_agg(g.cause, g.letters) as causes
    from gone g
    join endpoint e on e.id = g.endpoint_id
    where e.tenant_id <> 'postrider'
    group by e.tenant_id, e.outside_id, g.minute
  loop
    perform operational_event('delivery.dead_lettered', json_build_object(
      'tenant_id', told.tenant_id, 'endpoint_id', told.outside_id, 'minute', told.minute, 'dead_letters', told.letters,
      'causes', told.causes));
    events := events + 1;
  end loop;
  return events;
end
$$;

-- ── retention ──────────────────────────────────────────────────────────────────────────────────────────────────

-- From when on things are kept. Set before anything is looked at, so that nothing new can come to depend on what is
-- about to go: an event from before is not replayed any more.
create table kept_since (
  name text primary key,
  since timestamptz not null
);
insert into kept_since (name, since) values ('events', '-infinity');

-- Keys live as long as their events.
create index event_key_by_event on event_key (event_id);
create index pause_span_ended on pause_span (until) where until is not null;

-- What keeps a day from being dropped: rows of the queue (those of replays point back with event_id), wide fan-outs, and
-- dead letters that nobody resolved; of the inbox messages that are not done, or dead and neither retried nor discarded, but
-- for those of a source that was deleted. Null: nothing.
create function held_by(parent text, day date) returns text language plpgsql stable
set search_path = postrider, pg_temp as $$
declare
  low uuid := id_floor(day::timestamp at time zone 'UTC');
  high uuid := id_floor((day + 1)::timestamp at time zone 'UTC');
begin
  if parent = 'inbox' then
    return case
      when exists (select from inbox_queue w where w.id >= low and w.id < high and w.bucket >= 0)
        then 'a message that is not done'
      when exists (select
                   from inbox m
                   join source s on s.id = m.source_id
                   where m.id >= low and m.id < high and m.dead_at is not null)
        then 'a dead message'
    end;
  end if;
  if exists (select from bucket_lease l join queue q on q.bucket = l.bucket and q.id >= low and q.id < high) then
    return 'a pending delivery';
  elsif exists (select from dead_letter d where d.delivery_id >= low and d.delivery_id < high and d.resolved_at is null) then
    return 'an unresolved dead letter';
  elsif parent <> 'event' then
    return null;
  elsif exists (select from fanout_task f where f.event_id >= low and f.event_id < high) then
    return 'a fan-out';
  elsif exists (select
                from replayed r
                join endpoint e on e.id = r.endpoint_id
                join queue q on q.bucket = e.bucket and q.id = r.delivery_id
                where r.event_id >= low and r.event_id < high) then
    return 'a pending replay';
  elsif exists (select
                from replayed r
                join dead_letter d on d.delivery_id = r.delivery_id and d.resolved_at is null
                where r.event_id >= low and r.event_id < high) then
    return 'an unresolved dead letter of a replay';
  end if;
  return null;
end
$$;

-- ── erasure ────────────────────────────────────────────────────────────────────────────────────────────────────

-- Empties the bodies of these events and cancels what is pending of them, replays included; what is being sent at this
-- moment may still arrive. Returns how many were erased, and how many deliveries canceled. Locks: the events, the rows.
create function erase_payloads(events uuid[]) returns table (erased bigint, canceled bigint)
language plpgsql set search_path = postrider, pg_temp as $$
#variable_conflict use_column
declare
  ended record;
begin
  canceled := 0;
  -- All versions of each.
  events := events || array(select v.id
                            from unnest(events) as i (id)
                            join event e on e.id = i.id and e.main_id is not null
                            join event v on v.id >= first_delivery_id(i.id) and v.id <= last_delivery_id(i.id)
                            where v.id <> i.id);
  with gone as (
    update event e
    set body = '',
        subject = null,
        erased_at = now()
    where e.id = any (events)
      and e.id >= (select min(i::text)::uuid from unnest(events) as i)
      and e.id <= (select max(i::text)::uuid from unnest(events) as i)
      and e.erased_at is null
    returning e.id, e.main_id
  )
  select count(*) into erased from gone where main_id is null or main_id = id;
  delete from fanout_task f where f.event_id = any (events);
  for ended in
    with wanted as (
      select l.bucket, q.id
      from unnest(events) as i (event_id)
      cross join bucket_lease l
      join queue q on q.bucket = l.bucket
                  and q.id >= (left(replace(i.event_id::text, '-', ''), 20) || repeat('0', 12))::uuid
                  and q.id <= (left(replace(i.event_id::text, '-', ''), 20) || repeat('f', 12))::uuid
      union
      select e.bucket, r.delivery_id
      from replayed r
      join endpoint e on e.id = r.endpoint_id
      where r.event_id = any (events)
    ),
    gone as (
      delete from queue q
      using wanted w
      where q.bucket = w.bucket
        and q.id = w.id
      returning q.*
    ),
    counted as (
      insert into replay_progress as p (replay_id, bucket, canceled)
      select g.replay_id, g.bucket, count(*)
      from gone g
      where g.replay_id is not null
      group by g.replay_id, g.bucket
      order by g.replay_id, g.bucket
      on conflict (replay_id, bucket) do update
        set canceled = p.canceled + excluded.canceled
    )
    insert into attempt (delivery_id, attempt, bucket, endpoint_id, event_id, tenant_id, outcome, started_at, total_us,
                         node_id, created_at, replay_id, error_detail)
    select g.id, 0, g.bucket, g.endpoint_id, g.event_id, g.tenant_id, 'canceled', now(), 0,
           '00000000-0000-0000-0000-000000000000', g.created_at, g.replay_id, 'the payload was erased'
    from gone g
    returning delivery_id, endpoint_id, tenant_id
  loop
    canceled := canceled + 1;
    perform note_change('cancel', ended.tenant_id, ended.endpoint_id, ended.delivery_id);
  end loop;
  return next;
end
$$;

-- ── for people ─────────────────────────────────────────────────────────────────────────────────────────────────

create view webhook_replay_requests as
select id as replay_id, delivery_id, requested_by, reason, created_at, tenant_id, kind, status, matched, queued,
       'rpl_' || replace(id::text, '-', '') as replay, 'dlv_' || replace(delivery_id::text, '-', '') as delivery
from replay;

do $$
begin
  if to_regprocedure('postrider.grant_support()') is not null then
    perform postrider.grant_support();
  end if;
end
$$;
