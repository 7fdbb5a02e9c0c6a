-- Events, the queue of deliveries, and what publishing needs.

create table event (
  id uuid not null,
  tenant_id text collate "C" not null,
  public_id text collate "C",                 -- the publisher's custom ID; null: 'evt_' || hex of id
  type text collate "C" not null,
  version text,
  subject text,
  traceparent text,
  body text not null,                          -- the exact bytes that are sent
  created_at timestamptz not null default now(),
  -- Of an event in several versions: its main row, which has the default version. The IDs of all its rows begin with the
  -- same ten bytes. Null: the event has only this row.
  main_id uuid,
  is_kept boolean not null default false,
  erased_at timestamptz,                       -- when the payload was erased: the body is empty, and is not sent again
  -- A second line of defence, because these become headers and JSON. The rules are in model/event_rules.cpp. To be cheap,
  -- this checks characters and length only.
  constraint event_form check (
    type <> ''
    and octet_length(type) <= 128
    and type !~ '[^A-Za-z0-9_.-]'
    and public_id <> ''
    and octet_length(public_id) <= 64
    and public_id !~ '[^A-Za-z0-9_-]'
    and octet_length(traceparent) = 55
    and traceparent !~ '[^0-9a-f-]'
  )
) partition by list (is_kept);
create index event_by_tenant on event (tenant_id, id);
-- "Everything about in_123": costs only events that have a subject.
create index event_by_subject on event (subject, tenant_id, id) where subject is not null;
-- There is one partition per day. Before retention drops a day, it moves rows that are still needed to the kept table by
-- updating is_kept. So a statement that reads the parent always sees a row in one of the two. The key is declared on the
-- partitions, because a key of the parent would have to contain is_kept.
create table event_day partition of event (primary key (id)) for values in (false) partition by range (id);
create table event_kept partition of event (primary key (id)) for values in (true);

create table queue (
  bucket integer not null,
  id uuid not null,                            -- first 10 bytes of the event's ID, then the endpoint's tail
  event_id uuid not null,
  endpoint_id uuid not null,
  tenant_id text collate "C" not null,
  retry boolean not null default false,        -- was attempted; always false for strict endpoints, where position decides
  position bigint not null default 0,          -- commit order for strict endpoints; otherwise 0
  due_at timestamptz not null,
  attempts integer not null default 0,
  probes integer not null default 0,           -- failed probes so far, which used no attempt
  created_at timestamptz not null,
  replay_id uuid,
  primary key (bucket, id)
) with (
  vacuum_truncate = off,
  autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_insert_threshold = -1,
  autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_threshold = 50000
);
create index queue_lane on queue (bucket, endpoint_id, retry, position, due_at, id);
create index queue_replayed on queue (event_id, id) where replay_id is not null;

-- Sentinel rows. The planner must never see an empty queue: a plan made for an empty table is bad for a backlog.
insert into queue (bucket, id, event_id, endpoint_id, tenant_id, due_at, created_at)
select -1, gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), '', 'infinity', 'epoch'
from generate_series(1, 5000);

-- One row per publish batch. Nodes use it to find deliveries that other nodes committed, with a snapshot cursor:
-- xid >= last.xmax or xid = any(last.xip).
create table publish_log (
  xid xid8 not null default pg_current_xact_id(),
  node_id uuid not null,
  first_id uuid not null,                      -- delivery IDs of the batch are in [first_id, last_id]
  last_id uuid not null,
  buckets integer[] not null,
  at timestamptz not null default now()
) with (autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_scale_factor = 0);
create index publish_log_by_xid on publish_log (xid);

create table event_key (
  tenant_id text collate "C" not null,
  kind text collate "C" not null check (kind in ('id', 'key')),
  key text collate "C" not null check (octet_length(key) <= 255),
  event_id uuid not null,
  request_hash bytea not null,
  response text not null,                      -- JSON of the first response, returned again
  primary key (tenant_id, kind, key)
);
-- Keys live as long as their events.
create index event_key_by_event on event_key (event_id);

-- Wide fan-out: an event for more endpoints than one transaction should create deliveries for. Done in chunks.
create table fanout_task (
  event_id uuid primary key,
  tenant_id text collate "C" not null,
  type text collate "C" not null,
  version text,
  created_at timestamptz not null,
  after_endpoint uuid                          -- last endpoint that is done; null: none yet
);
create index fanout_task_by_tenant on fanout_task (tenant_id, event_id);

-- The last position used of each strict endpoint. Its row lock makes the order of positions the order of commits.
create table endpoint_position (
  endpoint_id uuid primary key,
  position bigint not null default 0
) with (fillfactor = 50);

-- ── versions of an event ─────────────────────────────────────────────────────────────────────────────────────────────

-- The row of an event (id, main_id, version of its main row) for a subscription with these versions; null: none. Prefers
-- the default version, then the others in the order in which they were published.
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

-- ── compression ──────────────────────────────────────────────────────────────────────────────────────────────────────

-- lz4 if the server has it: a body of 4 KB takes 18 µs, with pglz 99 µs.
do $$
begin
  alter table event alter column body set compression lz4;
  alter table event_day alter column body set compression lz4;
  alter table event_kept alter column body set compression lz4;
exception when feature_not_supported then
  raise notice 'this server was built without lz4: event bodies are compressed with pglz';
end
$$;
