-- Retention, erasure of payloads, and deliveries that wait too long.

-- The start of the oldest day that is kept, of events (and dead letters) and of attempts. Retention raises it before it
-- checks the days to drop, so that no new row can need them. `below`: the smallest ID within the retention. The history of
-- older deliveries is written directly to the kept tables.
create table kept_since (
  name text primary key,
  since timestamptz not null,
  below uuid not null
);
insert into kept_since (name, since, below)
values ('events', '-infinity', '00000000-0000-0000-0000-000000000000'),
       ('attempts', '-infinity', '00000000-0000-0000-0000-000000000000');

-- The IDs in [low, high) of a table of events or attempts that unfinished range replays still need, in order: events that
-- they have not scanned yet and, for "missing", also attempts, which show whether there was a delivery. Indexes:
-- replay_unfinished, and the table's own by tenant.
create function needed_by_replays(parent text, source regclass, low uuid, high uuid, at_most integer)
returns setof uuid language plpgsql stable set search_path = postrider, pg_temp as $$
begin
  if parent = 'event' then
    return query execute format($q$
      select distinct n.id
      from replay r
      cross join lateral (
        select e.id
        from %s e
        where e.tenant_id = r.tenant_id
          and e.id >= greatest($1, id_floor(r.since), case when r.is_counted then first_delivery_id(r.after_id) end)
          and e.id < least($2, id_floor(r.until))
          and (r.event_types is null or type_patterns(e.type) && r.event_types)
        order by e.id
        limit $3
      ) as n
      where r.status in ('queued', 'running')
        and r.scope in ('missing', 'all')
      order by n.id
      limit $3
    $q$, source) using low, high, at_most;
  else
    return query execute format($q$
      select distinct n.delivery_id
      from replay r
      cross join lateral (
        select a.delivery_id
        from %s a
        where a.tenant_id = r.tenant_id
          and a.delivery_id >= greatest($1, id_floor(r.since),
                                        case when r.is_counted then first_delivery_id(r.after_id) end)
          and a.delivery_id < least($2, id_floor(r.until))
        order by a.delivery_id
        limit $3
      ) as n
      where r.status in ('queued', 'running')
        and r.scope = 'missing'
      order by n.delivery_id
      limit $3
    $q$, source) using low, high, at_most;
  end if;
end
$$;

-- Why a day of the inbox cannot be dropped: it has messages that are not done, or that are dead and were neither retried nor
-- discarded, except those of deleted sources. Null: it can.
create function inbox_held_by(day date) returns text language plpgsql stable
set search_path = postrider, pg_temp as $$
declare
  low uuid := id_floor(day::timestamp at time zone 'UTC');
  high uuid := id_floor((day + 1)::timestamp at time zone 'UTC');
begin
  return case
    when exists (select from inbox_queue w where w.id >= low and w.id < high and w.bucket >= 0)
      then 'a message that is not done'
    when exists (select
                 from inbox m
                 join source s on s.id = m.source_id
                 where m.id >= low and m.id < high and m.dead_at is not null)
      then 'a dead message'
  end;
end
$$;

-- ── deliveries that wait too long ────────────────────────────────────────────────────────────────────────────────────

-- Why the deliveries of an endpoint wait, whatever is due; null: they do not.
create function waiting_reason(endpoint_status text, tenant_status text, held_reason text) returns text language sql stable
set search_path = postrider, pg_temp as $$
  select case
    when endpoint_status = 'paused' then 'the endpoint is paused'
    when tenant_status = 'paused' then 'the tenant is paused'
    when held_reason is not null then 'the deliveries cannot be signed'
    when (select is_paused from brakes) then 'all deliveries are paused'
  end
$$;

-- ── erasure ──────────────────────────────────────────────────────────────────────────────────────────────────────────

-- Erases the bodies of these events and cancels their pending deliveries, replays included. A delivery that is in flight may
-- still arrive. Returns the numbers of erased events and of canceled deliveries. Locks: the events and the queue rows.
create function erase_payloads(events uuid[]) returns table (erased bigint, canceled bigint)
language plpgsql set search_path = postrider, pg_temp as $$
#variable_conflict use_column
declare
  ended record;
  buckets integer[];
begin
  canceled := 0;
  -- All versions of each event.
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
  -- Those of the tenants' endpoints, whatever their status: the rows of a deleted endpoint are still being removed.
  buckets := array(select distinct p.bucket
                   from endpoint p
                   where p.tenant_id in (select e.tenant_id
                                         from event e
                                         where e.id = any (events)
                                           and e.id >= (select min(i::text)::uuid from unnest(events) as i)
                                           and e.id <= (select max(i::text)::uuid from unnest(events) as i)));
  for ended in
    with wanted as (
      select b.bucket, q.id
      from unnest(events) as i (event_id)
      cross join unnest(buckets) as b (bucket)
      join queue q on q.bucket = b.bucket
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
                         node_id, created_at, replay_id, error_detail, is_kept)
    select g.id, 0, g.bucket, g.endpoint_id, g.event_id, g.tenant_id, 'canceled', now(), 0,
           '00000000-0000-0000-0000-000000000000', g.created_at, g.replay_id, 'the payload was erased',
           g.id < (select below from kept_since where name = 'attempts')
    from gone g
    returning delivery_id, endpoint_id, tenant_id
  loop
    canceled := canceled + 1;
    perform record_change('cancel', ended.tenant_id, ended.endpoint_id, ended.delivery_id);
  end loop;
  return next;
end
$$;
