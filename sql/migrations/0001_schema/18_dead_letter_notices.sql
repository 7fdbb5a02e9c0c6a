-- Endpoints of which only some attempts fail, and dead letters: events for operators, notices for contacts.

-- ── degraded endpoints ───────────────────────────────────────────────────────────────────────────────────────────────

-- Endpoints whose success rate is below `below` percent over the last hour, with at least `attempts_min` attempts, or is no
-- longer: halfway between `below` and 100, so that they do not go back and forth. The hour is this one of the clock, and the
-- share of the one before that is less than an hour ago. Reads the rollups of two hours. What fails completely is left to
-- endpoints_to_report, as is the hour after an outage that the contacts know.
create function endpoints_to_degrade(below integer, attempts_min integer, at_most integer)
returns table (endpoint_id uuid, is_degraded boolean, attempts integer, failed integer) language sql stable
set search_path = postrider, pg_temp as $$
  with clock as (
    select date_trunc('hour', now(), 'UTC') as hour,
           1 - extract(epoch from now() - date_trunc('hour', now(), 'UTC')) / 3600 as share_before
  ),
  recent as materialized (
    select r.endpoint_id,
           sum(r.exchanges * part.share) as attempts,
           sum(r.delivered * part.share) as delivered
    from clock
    join rollup r on r.hour >= clock.hour - interval '1 hour'
    cross join lateral (select case when r.hour < clock.hour then clock.share_before else 1 end as share) as part
    group by r.endpoint_id
  ),
  changed as (
    select e.id, true as is_degraded, r.attempts, r.delivered
    from recent r
    join endpoint e on e.id = r.endpoint_id
    join tenant t on t.id = e.tenant_id
    where r.attempts >= attempts_min
      and 100 * r.delivered < below * r.attempts
      and e.degraded_since is null
      and e.status = 'active'
      and t.status = 'active'
      and e.tenant_id <> 'postrider'
      and e.reported_stage = 0
      and (e.failing_since is null or e.failing_since > now() - interval '90 seconds')
      and (e.outage_ended_at is null or e.outage_ended_at <= now() - interval '1 hour')
    union all
    select e.id, false, r.attempts, r.delivered
    from endpoint e
    join recent r on r.endpoint_id = e.id
    where e.degraded_since is not null
      and e.status = 'active'
      and e.reported_stage = 0
      and r.attempts >= 1
      and 200 * r.delivered >= (100 + below) * r.attempts
  )
  select c.id, c.is_degraded, round(c.attempts)::integer, round(c.attempts - c.delivered)::integer
  from changed c
  order by c.id
  limit at_most
$$;

-- Reports that the endpoint is degraded, or no longer. No effect if another transaction was first. Returns the event's type,
-- or null. Locks the endpoint; one that is locked is reported later.
create function report_degraded(which uuid, is_degraded boolean, attempts integer, failed integer) returns text
language plpgsql set search_path = postrider, pg_temp as $$
declare
  e endpoint;
  kind text := case when is_degraded then 'endpoint.degraded' else 'endpoint.recovered' end;
begin
  select * into e from endpoint x where x.id = which for no key update skip locked;
  if not found or e.status <> 'active' or e.reported_stage > 0 or (e.degraded_since is null) <> is_degraded then
    return null;
  end if;
  update endpoint x
  set degraded_since = case when is_degraded then now() end
  where x.id = which
  returning * into e;
  perform publish_endpoint_event(e, kind, jsonb_build_object('attempts', attempts, 'failed', failed));
  if is_degraded then
    perform put_notice(e, 'degraded', 1, null, attempts, failed);
  elsif e.notified_stage = 0 then
    delete from notice n where n.endpoint_id = which;
  else
    perform put_notice(e, 'recovered', 0, null, attempts, failed);
  end if;
  return kind;
end
$$;

-- ── dead letters ─────────────────────────────────────────────────────────────────────────────────────────────────────

-- Dead letters that the contacts have not heard of, by endpoint and cause. Those of a disabled endpoint are not among them:
-- the notice that it is disabled mentions them.
create table dead_letter_unnotified (
  tenant_id text collate "C" not null,
  endpoint_id uuid not null references endpoint (id),
  cause text not null,
  dead_letters bigint not null,
  since timestamptz not null,
  primary key (tenant_id, endpoint_id, cause)
);

-- Notices about the dead letters of a tenant: the first at once, further ones a day after the last.
create table dead_letter_notice (
  tenant_id text collate "C" primary key references tenant (id),
  due_at timestamptz,                          -- null: there is nothing to send
  notified_at timestamptz,                     -- when the last one was begun
  content jsonb,                               -- the one that is being sent
  contacts text[],                             -- of these, not yet notified
  tries integer not null default 0
);
create index dead_letter_notice_by_due on dead_letter_notice (due_at) where due_at is not null;

-- Locks: the notice of the tenant before its counts, like take_dead_letter_notice().
create function note_dead_letters(tenant text, endpoint uuid, minute timestamptz, causes jsonb) returns void
language plpgsql set search_path = postrider, pg_temp as $$
begin
  if causes - 'endpoint_disabled' = '{}' then
    return;
  end if;
  insert into dead_letter_notice as n (tenant_id, due_at)
  values (tenant, now())
  on conflict (tenant_id) do update
    set due_at = coalesce(n.due_at, greatest(now(), n.notified_at + interval '1 day'));
  insert into dead_letter_unnotified as u (tenant_id, endpoint_id, cause, dead_letters, since)
  select tenant, endpoint, c.cause, c.dead_letters::bigint, minute
  from jsonb_each_text(causes - 'endpoint_disabled') as c (cause, dead_letters)
  order by c.cause
  on conflict (tenant_id, endpoint_id, cause) do update
    set dead_letters = u.dead_letters + excluded.dead_letters,
        since = least(u.since, excluded.since);
end
$$;

-- Reports the dead letters of past minutes to operators, with one event per endpoint and minute, up to a limit, and notes them
-- for the contacts. Returns the number of events.
create function report_dead_letters(at_most integer) returns integer
language plpgsql set search_path = postrider, pg_temp as $$
declare
  report record;
  events integer := 0;
begin
  for report in
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
      returning m.endpoint_id, m.minute, m.cause, m.dead_letters
    )
    select e.tenant_id, e.id, e.public_id, g.minute, sum(g.dead_letters) as dead_letters,
           jsonb_object_agg(g.cause, g.dead_letters) as causes
    from gone g
    join endpoint e on e.id = g.endpoint_id
    where e.tenant_id <> 'postrider'
    group by e.tenant_id, e.id, e.public_id, g.minute
    order by e.tenant_id, e.id, g.minute
  loop
    perform publish_operational_event('delivery.dead_lettered', json_build_object(
      'tenant_id', report.tenant_id, 'endpoint_id', report.public_id, 'minute', report.minute, 'dead_letters', report.dead_letters,
      'causes', report.causes));
    perform note_dead_letters(report.tenant_id, report.id, report.minute, report.causes);
    events := events + 1;
  end loop;
  return events;
end
$$;

-- Moves the unnotified dead letters of a tenant into the text of a notice, and marks their endpoints as notified. Endpoints of
-- which the contacts heard within the hour are left for the next notice, as are locked ones. Null: none is left. Lists up to 20
-- endpoints.
create function collect_dead_letters(tenant text) returns jsonb language sql
set search_path = postrider, pg_temp as $$
  with chosen as materialized (
    select e.id, e.public_id, e.url
    from endpoint e
    where e.id in (select u.endpoint_id from dead_letter_unnotified u where u.tenant_id = tenant)
      and (e.notified_at is null or e.notified_at <= now() - interval '1 hour')
    order by e.id
    for no key update skip locked
  ),
  marked as (
    update endpoint e set notified_at = now() from chosen c where e.id = c.id
  ),
  gone as (
    delete from dead_letter_unnotified u
    using chosen c
    where u.tenant_id = tenant
      and u.endpoint_id = c.id
    returning u.endpoint_id, u.cause, u.dead_letters, u.since
  ),
  by_endpoint as (
    select c.public_id, c.url, sum(g.dead_letters) as dead_letters, min(g.since) as since,
           jsonb_object_agg(g.cause, g.dead_letters) as causes
    from gone g
    join chosen c on c.id = g.endpoint_id
    group by c.public_id, c.url
  ),
  listed as (
    select *
    from by_endpoint
    order by dead_letters desc, public_id
    limit 20
  )
  select jsonb_build_object(
           'dead_letters', sum(b.dead_letters), 'since', min(b.since), 'endpoint_count', count(*),
           'endpoints', (select jsonb_agg(jsonb_build_object('endpoint_id', l.public_id, 'url', l.url,
                                                             'dead_letters', l.dead_letters, 'causes', l.causes)
                                          order by l.dead_letters desc, l.public_id)
                         from listed l))
  from by_endpoint b
  having count(*) > 0
$$;

-- Takes the notice about dead letters that has waited longest, for an hour, like take_notice(). outcome: send, capped, waiting
-- (the contacts heard of its endpoints within the hour), dropped.
create function take_dead_letter_notice(busy text[], per_day integer)
returns table (outcome text, tenant_id text, content text, contacts text[], tries integer) language plpgsql
set search_path = postrider, pg_temp as $$
#variable_conflict use_column
declare
  taken dead_letter_notice;
  next_at timestamptz := now() + interval '1 hour';
begin
  select * into taken
  from dead_letter_notice n
  where n.due_at <= now()
    and n.tenant_id <> all (busy)
  order by n.due_at
  limit 1
  for update skip locked;
  if not found then
    return;
  end if;
  tenant_id := taken.tenant_id;
  contacts := contacts_to_notify(taken.tenant_id);
  if taken.content is not null then
    select array_agg(c order by place) into contacts
    from unnest(taken.contacts) with ordinality as t (c, place)
    where c = any (contacts);
  end if;
  delete from dead_letter_unnotified u
  using endpoint e
  where u.tenant_id = taken.tenant_id
    and e.id = u.endpoint_id
    and (e.status = 'deleted' or contacts is null);
  if contacts is null or (taken.content is null
                          and not exists (select from dead_letter_unnotified u where u.tenant_id = taken.tenant_id)) then
    outcome := 'dropped';
    taken.content := null;
    next_at := null;
  elsif taken.content is not null then
    outcome := 'send';
  elsif not exists (select
                    from dead_letter_unnotified u
                    join endpoint e on e.id = u.endpoint_id
                    where u.tenant_id = taken.tenant_id
                      and (e.notified_at is null or e.notified_at <= now() - interval '1 hour')) then
    outcome := 'waiting';
    next_at := now() + interval '5 minutes';
  elsif not take_mail_budget('notices', taken.tenant_id, cardinality(contacts), per_day) then
    outcome := 'capped';
    next_at := next_mail_day();
  else
    taken.content := collect_dead_letters(taken.tenant_id);
    taken.notified_at := now();
    outcome := 'send';
    if taken.content is null then   -- locked meanwhile
      outcome := 'waiting';
      next_at := now() + interval '1 minute';
    end if;
  end if;
  tries := case when outcome = 'send' then taken.tries + 1 else 0 end;
  content := taken.content::text;
  update dead_letter_notice n
  set due_at = next_at, notified_at = taken.notified_at, content = taken.content, contacts = take_dead_letter_notice.contacts,
      tries = take_dead_letter_notice.tries
  where n.tenant_id = taken.tenant_id;
  return next;
end
$$;
