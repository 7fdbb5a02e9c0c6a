-- Replays of one delivery or of a time range, and refanout.

create table replay (
  id uuid primary key,
  tenant_id text collate "C" not null references tenant (id),
  kind text not null check (kind in ('delivery', 'range')),
  status text not null check (status in ('queued', 'running', 'completed', 'canceled')),
  reason text not null,
  requested_by text not null,                  -- 'key_…', or 'sql:' and a database role
  on_behalf_of text not null default 'operator' check (on_behalf_of in ('customer', 'operator', 'postrider')),
  delivery_id uuid,                            -- of kind delivery: the delivery to replay
  scope text check (scope in ('failed', 'missing', 'all')),   -- of kind range, like the columns that follow
  endpoint_id uuid,                            -- null: all
  event_types text[],                          -- patterns; null: all
  causes text[],                               -- of dead letters; null: all
  delivery_ids uuid[],                         -- only these dead letters; null: all
  since timestamptz,
  until timestamptz,
  rate_per_second double precision,
  is_counted boolean not null default false,   -- matches are counted first, and queued then
  matched bigint not null default 0,
  queued bigint not null default 0,
  after_id uuid,                               -- cursor of the current pass: the delivery ID of a dead letter,
  after_endpoint uuid,                         -- or the ID of an event and an endpoint
  runner uuid,                                 -- the node that runs it
  lease_until timestamptz,                     -- by the database's clock; then another node may take it over
  created_at timestamptz not null default now(),
  started_at timestamptz,
  finished_at timestamptz
) with (fillfactor = 50);
create index replay_by_tenant on replay (tenant_id, id);
create index replay_unfinished on replay (tenant_id, id) where status in ('queued', 'running');
create unique index replay_running on replay (tenant_id) where status = 'running';
create index replay_by_requester on replay (requested_by, created_at) where kind = 'delivery';

-- Requesters with a limit on replays of single deliveries: each locks its own row while its replays are counted.
create table replay_requester (
  requested_by text collate "C" primary key,
  taken_at timestamptz not null default now()
) with (fillfactor = 50);

-- Deliveries that replays created. It finds the replays of an event, and ensures that a missing delivery is replayed once. A
-- row is deleted with its event.
create table replayed (
  event_id uuid not null,
  endpoint_id uuid not null,
  delivery_id uuid not null,
  origin_id uuid,                              -- null: the event had no delivery for the endpoint
  replay_id uuid not null,
  primary key (event_id, endpoint_id, delivery_id)
);
create index replayed_by_replay on replayed (replay_id, delivery_id);

-- Outcomes of the deliveries of a replay, counted by settle. A bucket belongs to one shard, so settles do not wait for each
-- other here.
create table replay_progress (
  replay_id uuid not null,
  bucket integer not null,
  delivered bigint not null default 0,
  failed bigint not null default 0,
  canceled bigint not null default 0,
  primary key (replay_id, bucket)
) with (fillfactor = 50);

-- Progress of `postrider outbox refanout`: one row per range and origin that it reads. A later run with the same arguments
-- continues after the cursor.
create table refanout (
  since timestamptz not null,
  until timestamptz not null,
  tenant_id text collate "C" not null default '',   -- '': all
  origin text not null,                             -- events, outbox:<id>, archive:<file>
  after_id uuid,                                    -- events: the last one that was scanned,
  after_endpoint uuid,                              -- and the last of its endpoints
  after_time timestamptz,                           -- outbox: processed_at and ID of the last row
  after_row bigint not null default 0,              -- archive: lines
  scanned bigint not null default 0,
  queued bigint not null default 0,                 -- outbox: rows that the relay publishes again
  started_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  finished_at timestamptz,
  primary key (since, until, tenant_id, origin)
) with (fillfactor = 50);

-- Creates a replay of one delivery: a new delivery of the same event. Both the API and SQL use it.
--   wanted_tenant null: any tenant (SQL); per_second_max null: no limit; new_replay and new_delivery: the IDs, if they
--   were returned to the caller before
-- Returns one row. outcome: created, unknown_delivery, endpoint_inactive, event_gone, event_erased, too_fast.
-- Locks: the event against erasure; the position of a strict endpoint, until commit.
create function create_replay(wanted_tenant text, wanted uuid, why text, who text, due timestamptz,
                            per_second_max integer default null, new_replay uuid default null,
                            new_delivery uuid default null, on_behalf_of text default 'operator')
returns table (outcome text, replay_id uuid, delivery_id uuid, tenant_id text)
language plpgsql set search_path = postrider, pg_temp as $$
#variable_conflict use_column
declare
  old record;
  target record;
  gone record;
  next_position bigint := 0;
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
    -- One at a time per requester, so that the count is right.
    insert into replay_requester (requested_by) values (who) on conflict (requested_by) do update set taken_at = now();
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
  if not found then
    return query select 'event_gone', null::uuid, null::uuid, null::text;
    return;
  end if;
  -- After its retention an event is kept only while a row needs it, so only such a row can be replayed. The lock prevents
  -- that the dead letter is resolved meanwhile.
  if old.event_id < (select k.below from kept_since k where k.name = 'events') then
    perform
    from dead_letter d
    where d.delivery_id = wanted
      and d.bucket = target.bucket
      and d.resolved_at is null
    for no key update;
    if not found then
      return query select 'event_gone', null::uuid, null::uuid, null::text;
      return;
    end if;
  end if;
  if gone.erased_at is not null then
    return query select 'event_erased', null::uuid, null::uuid, null::text;
    return;
  end if;

  replay_id := coalesce(new_replay, new_id());
  delivery_id := coalesce(new_delivery, new_id());
  outcome := 'created';
  tenant_id := old.tenant_id;
  insert into replay (id, tenant_id, kind, status, reason, requested_by, on_behalf_of, delivery_id, is_counted, matched,
                      queued, created_at, started_at, finished_at)
  values (create_replay.replay_id, old.tenant_id, 'delivery', 'completed', why, who, create_replay.on_behalf_of, wanted, true,
          1, 1, clock_timestamp(), now(), now());
  insert into replayed (event_id, endpoint_id, delivery_id, origin_id, replay_id)
  values (old.event_id, old.endpoint_id, create_replay.delivery_id, wanted, create_replay.replay_id);
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
    returning p.position into next_position;
  end if;
  -- give_up_seconds count from the time at which it may be sent.
  insert into queue (bucket, id, event_id, endpoint_id, tenant_id, position, due_at, created_at, replay_id)
  values (target.bucket, create_replay.delivery_id, old.event_id, old.endpoint_id, old.tenant_id, next_position,
          greatest(due, now()), greatest(due, now()), create_replay.replay_id);
  -- There is no handoff in memory: its owner fetches it.
  insert into publish_log (node_id, first_id, last_id, buckets)
  values ('00000000-0000-0000-0000-000000000000', create_replay.delivery_id, create_replay.delivery_id,
          array[target.bucket]);
  return next;
end
$$;
