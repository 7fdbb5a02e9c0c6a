-- The engine's tables: registry, ownership, events, queue, history.
--
-- Hot tables (event, queue, attempt, dead_letter, publish_log, event_key) have no foreign keys; their statements
-- carry the distribution column (event: id; queue, attempt, dead_letter: bucket), so that they can be distributed.
-- {{buckets}} is the configured number of buckets; it is fixed here for the life of the schema.

-- ── settings fixed for the life of the schema ──────────────────────────────────────────────────────────────────

create table setting (
  name text primary key,
  value text not null
);
insert into setting (name, value) values ('buckets', '{{buckets}}');

-- ── registry ───────────────────────────────────────────────────────────────────────────────────────────────────

create table tenant (
  id text collate "C" primary key check (id ~ '^[A-Za-z0-9_-][A-Za-z0-9_.:@-]{0,63}$'),
  name text,
  status text not null default 'active' check (status in ('active', 'paused', 'deleted')),
  status_reason text,
  status_since timestamptz not null default now(),
  status_by text not null default 'operator' check (status_by in ('customer', 'operator', 'postrider')),
  max_in_flight integer,
  rate_per_second double precision,
  publish_rate_per_second double precision,
  payload_bytes_max integer,
  endpoints_max integer,
  contacts jsonb check (jsonb_typeof(contacts) = 'array'),   -- the addresses; their state is in `contact`
  metadata jsonb,
  endpoint_count integer not null default 0,   -- not deleted ones; decides whether an event is very wide
  strict_count integer not null default 0,     -- how many of them are ordered; 0 spares publish the ordered pass
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);

create table endpoint (
  id uuid primary key,
  public_id text collate "C" not null,        -- 'ep_' || hex of id, or the caller's own id
  tenant_id text collate "C" not null references tenant (id),
  bucket integer not null,
  delivery_tail text collate "C" not null,     -- last 12 hex digits of every delivery id of this endpoint
  url text not null,
  description text,
  status text not null default 'active' check (status in ('active', 'paused', 'disabled', 'deleted')),
  status_reason text,
  status_since timestamptz not null default now(),
  status_by text not null default 'operator' check (status_by in ('customer', 'operator', 'postrider')),
  max_attempts integer not null default 8,
  timeout_ms integer not null default 10000,
  give_up_seconds integer not null default 259200,
  max_in_flight integer not null default 10,
  rate_per_second double precision,
  ordering text not null default 'none' check (ordering in ('none', 'strict')),
  retry_schedule jsonb,
  on_rejected text not null default 'dead_letter' check (on_rejected in ('dead_letter', 'retry', 'pause')),
  signature text not null default 'standard'
    check (signature in ('standard', 'standard-ed25519', 'hex-v1', 'sha256')),
  headers_sealed bytea,                        -- custom headers, a sealed JSON object
  metadata jsonb,
  failing_since timestamptz,                   -- first failure without a success since
  last_success_at timestamptz,
  last_failure_at timestamptz,
  breaker text not null default 'closed' check (breaker in ('closed', 'open')),
  last_probe_at timestamptz,                   -- of the open breaker, and failed; null: none since the last success
  last_probe_error text,
  held_reason text,                            -- why the sending node cannot sign, so keeps the deliveries; null: it can
  held_since timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create unique index endpoint_by_public_id on endpoint (tenant_id, public_id);
-- Two endpoints of one tenant with the same tail would make the same delivery id for one event.
create unique index endpoint_by_tail on endpoint (tenant_id, delivery_tail);
create index endpoint_by_bucket on endpoint (bucket);

create table endpoint_secret (
  id uuid primary key,
  endpoint_id uuid not null references endpoint (id),
  sealed bytea not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz                       -- end of the overlap after a rotation; null: current
);
create index endpoint_secret_by_endpoint on endpoint_secret (endpoint_id);

create table subscription (
  tenant_id text collate "C" not null references tenant (id),
  pattern text collate "C" not null,           -- a type, a prefix ending in .*, or *
  endpoint_id uuid not null references endpoint (id),
  enabled boolean not null default true,
  versions text[],
  created_at timestamptz not null default now(),
  primary key (tenant_id, pattern, endpoint_id)
);
create index subscription_by_endpoint on subscription (endpoint_id);

-- Time an endpoint (or a whole tenant: endpoint_id null) was paused; it does not count against give_up_seconds.
create table pause_span (
  id bigint generated always as identity primary key,
  tenant_id text collate "C" not null references tenant (id),
  endpoint_id uuid references endpoint (id),
  since timestamptz not null default now(),
  until timestamptz
);
create index pause_span_by_tenant on pause_span (tenant_id, endpoint_id);

create table api_key (
  id uuid primary key,
  hash bytea not null unique,                  -- SHA-256 of the key
  role text not null check (role in ('admin', 'operator', 'publisher', 'reader')),
  tenant_id text collate "C" references tenant (id),
  payloads boolean not null default true,
  description text,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz
);

-- Every change of the registry takes the next version while holding this one row, so versions commit in order and
-- "version > the last one seen" misses nothing.
create table registry_version (
  singleton boolean primary key default true check (singleton),
  version bigint not null default 0
);
insert into registry_version default values;

create table control_log (
  version bigint primary key,
  kind text not null,                          -- endpoint, tenant, key, retry, cancel, ...
  tenant_id text collate "C",
  endpoint_id uuid,
  delivery_id uuid,
  at timestamptz not null default now()
);

-- The version of the last change that concerned the tenant or something of it. Whoever remembers where the tenant's
-- events go (publish) compares it, in the statement that writes them.
create table tenant_revision (
  tenant_id text collate "C" primary key,
  revision bigint not null
) with (fillfactor = 50);

-- Call it last in a transaction that changed the registry: it serialises such transactions from here to commit.
create function note_change(kind text, tenant_id text, endpoint_id uuid default null, delivery_id uuid default null)
returns bigint language sql as $$
  with next as (
    update postrider.registry_version set version = version + 1 returning version
  ),
  revised as (
    insert into postrider.tenant_revision as r (tenant_id, revision)
    select note_change.tenant_id, next.version
    from next
    where note_change.tenant_id is not null
      and note_change.delivery_id is null
    on conflict on constraint tenant_revision_pkey do update
      set revision = excluded.revision
  )
  insert into postrider.control_log (version, kind, tenant_id, endpoint_id, delivery_id)
  select next.version, note_change.kind, note_change.tenant_id, note_change.endpoint_id, note_change.delivery_id
  from next
  returning version
$$;

-- Changes made by functions that other roles may call. Those roles decide when they commit, so they must not hold
-- registry_version until then: they only append here, and a node notes the change soon after the commit.
create table requested_change (
  id bigint generated always as identity primary key,
  kind text not null,
  tenant_id text collate "C",
  endpoint_id uuid
);

-- Notes what was requested and committed; returns how many. Locks: as note_change.
create function note_requested_changes(at_most integer) returns bigint language sql
set search_path = postrider, pg_temp as $$
  with taken as (
    delete from requested_change
    where id = any (array(select r.id
                          from requested_change r
                          order by r.id
                          limit at_most
                          for update skip locked))
    returning id, kind, tenant_id, endpoint_id
  )
  select count(note_change(t.kind, t.tenant_id, t.endpoint_id))
  from (select * from taken order by id) as t
$$;

-- ── ownership ──────────────────────────────────────────────────────────────────────────────────────────────────

create table node (
  id uuid primary key,
  slot integer not null unique check (slot between 0 and 16383),   -- part of every id the node makes
  name text not null,
  version text not null,
  delivers boolean not null,                   -- has the delivery role, so it takes part in sharing buckets
  alive boolean not null default true,
  heartbeat bigint not null default 0,         -- only counts up; others judge by their own clock whether it moves
  started_at timestamptz not null default now(),
  heartbeat_at timestamptz not null default now()   -- for people
) with (fillfactor = 50);

create table bucket_lease (
  bucket integer primary key,
  owner uuid,
  epoch bigint not null default 0,             -- counts up at each change of owner
  since timestamptz not null default now()
) with (fillfactor = 50);
insert into bucket_lease (bucket) select generate_series(0, {{buckets}} - 1);

-- ── events and their deliveries ────────────────────────────────────────────────────────────────────────────────

create table event (
  id uuid not null,
  tenant_id text collate "C" not null,
  public_id text collate "C",                 -- the publisher's own id; null: 'evt_' || hex of id
  type text collate "C" not null,
  version text,
  subject text,
  traceparent text,
  body text not null,                          -- the exact bytes that are sent
  created_at timestamptz not null default now(),
  -- Of an event in several versions: the row that stands for it, which has the default version. All rows of the event
  -- begin with the same ten bytes. Null: there is but this one.
  main_id uuid,
  is_kept boolean not null default false,
  -- A second line of defence: these become headers and JSON. The rules are in model/event_rules.cpp. Cheap on purpose: the
  -- characters and the length, not the whole form.
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
-- Rows live in one table a day. Before retention drops a day it moves the rows that are still needed to the kept table,
-- by updating is_kept: every statement that reads the parent sees a row in one of the two places at any time. The key is
-- declared below the parent, because a key of the parent would have to contain is_kept.
create table event_day partition of event (primary key (id)) for values in (false) partition by range (id);
create table event_kept partition of event (primary key (id)) for values in (true);

create table queue (
  bucket integer not null,
  id uuid not null,                            -- first 10 bytes of the event's id, then the endpoint's tail
  event_id uuid not null,
  endpoint_id uuid not null,
  tenant_id text collate "C" not null,
  retry boolean not null default false,        -- has been attempted; strict endpoints keep false: position rules
  position bigint not null default 0,          -- strict endpoints: commit order; others 0
  due_at timestamptz not null,
  attempts integer not null default 0,
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

-- Sentinels: the planner must never see the queue empty, or a plan made on the empty table meets a backlog.
insert into queue (bucket, id, event_id, endpoint_id, tenant_id, due_at, created_at)
select -1, gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), '', 'infinity', 'epoch'
from generate_series(1, 5000);

-- One row per publish batch; how nodes find what others committed. Read with a snapshot cursor:
-- xid >= last.xmax or xid = any(last.xip).
create table publish_log (
  xid xid8 not null default pg_current_xact_id(),
  node_id uuid not null,
  first_id uuid not null,                      -- delivery ids of the batch lie in [first_id, last_id]
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
  answer text not null,                        -- the first answer's JSON, given again
  primary key (tenant_id, kind, key)
);

-- An event for more endpoints than one transaction should fan out; done in chunks behind the cursor.
create table fanout_task (
  event_id uuid primary key,
  tenant_id text collate "C" not null,
  type text collate "C" not null,
  version text,
  created_at timestamptz not null,
  after_endpoint uuid                          -- the chunks done so far end here; null: none yet
);
create index fanout_task_by_tenant on fanout_task (tenant_id, event_id);

-- The last position given out per strict endpoint; its row lock makes position order commit order.
create table endpoint_position (
  endpoint_id uuid primary key,
  position bigint not null default 0
) with (fillfactor = 50);

create table attempt (
  delivery_id uuid not null,
  attempt integer not null,                    -- 1, 2, …; 0: the delivery ended without an exchange
  bucket integer not null,
  endpoint_id uuid not null,
  event_id uuid not null,
  tenant_id text collate "C" not null,
  outcome text not null check (outcome in ('delivered', 'retrying', 'dead_letter', 'canceled')),
  status_code integer,
  error text,                                  -- a word: timeout_first_byte, tls_certificate_expired, ...
  error_detail text,                           -- a sentence for people
  started_at timestamptz not null,
  dns_us integer,
  connect_us integer,
  tls_us integer,
  first_byte_us integer,
  total_us integer not null,
  preview text,                                -- first bytes of the answer, redacted
  address text,
  next_attempt_at timestamptz,
  node_id uuid not null,
  created_at timestamptz not null,             -- when the delivery was created
  replay_id uuid,
  is_kept boolean not null default false       -- as in event
) partition by list (is_kept);
create table attempt_day partition of attempt (primary key (delivery_id, attempt, bucket))
  for values in (false) partition by range (delivery_id);
create table attempt_kept partition of attempt (primary key (delivery_id, attempt, bucket)) for values in (true);
create index attempt_by_endpoint on attempt (endpoint_id, delivery_id);
create index attempt_by_tenant on attempt (tenant_id, delivery_id);
create index attempt_not_delivered on attempt (tenant_id, outcome, delivery_id) where outcome <> 'delivered';

create table dead_letter (
  delivery_id uuid not null,
  bucket integer not null,
  endpoint_id uuid not null,
  event_id uuid not null,
  tenant_id text collate "C" not null,
  cause text not null
    check (cause in ('rejected', 'gone', 'exhausted', 'expired', 'blocked', 'endpoint_disabled')),
  attempts integer not null,
  status_code integer,
  error text,
  error_detail text,
  created_at timestamptz not null,
  dead_at timestamptz not null default now(),
  resolved_at timestamptz,
  resolution text check (resolution in ('replayed', 'discarded')),
  is_kept boolean not null default false       -- as in event
) partition by list (is_kept);
create table dead_letter_day partition of dead_letter (primary key (delivery_id, bucket))
  for values in (false) partition by range (delivery_id);
create table dead_letter_kept partition of dead_letter (primary key (delivery_id, bucket)) for values in (true);
create index dead_letter_by_tenant on dead_letter (tenant_id, delivery_id);
create index dead_letter_by_endpoint on dead_letter (endpoint_id, delivery_id);
create index dead_letter_unresolved on dead_letter (tenant_id, cause, delivery_id) where resolved_at is null;
-- What retention has to keep, of a day's events and of a day's deliveries.
create index dead_letter_unresolved_by_event on dead_letter (event_id) where resolved_at is null;
create index dead_letter_unresolved_by_id on dead_letter (delivery_id) where resolved_at is null;

-- lz4 where the server has it: pglz costs 99 µs on a 4 KB body, lz4 18.
do $$
begin
  alter table event alter column body set compression lz4;
  alter table event_day alter column body set compression lz4;
  alter table event_kept alter column body set compression lz4;
exception when feature_not_supported then
  raise notice 'this server is built without lz4: event bodies are compressed with pglz';
end
$$;

-- ── partitions by day, by range of a time-ordered uuid ─────────────────────────────────────────────────────────

-- The smallest id whose 48-bit millisecond prefix is not before t.
create function id_floor(t timestamptz) returns uuid language sql immutable strict as $$
  select (lpad(to_hex(ceil(extract(epoch from t) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;

-- The time in an id, to the millisecond.
create function id_time(id uuid) returns timestamptz language sql immutable strict as $$
  select to_timestamp(('x' || lpad(left(replace(id::text, '-', ''), 12), 16, '0'))::bit(64)::bigint / 1000.0)
$$;

-- Makes one day's partition of event, attempt or dead_letter unless it is there; true if it was made. Created apart
-- with a CHECK and then attached, so that an open query on the parent never blocks publishes behind this.
create function make_partition(parent text, day date) returns boolean language plpgsql as $$
declare
  partition text := parent || '_' || to_char(day, 'YYYYMMDD');
  days text := parent || '_day';
  range_column text := case parent when 'event' then 'id' else 'delivery_id' end;
  low uuid := postrider.id_floor(day::timestamp at time zone 'UTC');
  high uuid := postrider.id_floor((day + 1)::timestamp at time zone 'UTC');
begin
  if to_regclass('postrider.' || partition) is not null then
    return false;
  end if;
  execute format('create table postrider.%I (like postrider.%I including all)', partition, days);
  execute format('alter table postrider.%I add constraint by_day check (%I >= %L and %I < %L)',
                 partition, range_column, low, range_column, high);
  execute format('alter table postrider.%I attach partition postrider.%I for values from (%L) to (%L)',
                 days, partition, low, high);
  execute format('alter table postrider.%I drop constraint by_day', partition);
  return true;
end
$$;

-- Makes what is missing from `back` days ago to `ahead` days from now; returns how many were made.
create function make_partitions(back integer default 7, ahead integer default 14) returns integer language sql as $$
  select count(*)::integer
  from unnest(array['event', 'attempt', 'dead_letter']) as parent,
       generate_series(-back, ahead) as day
  where postrider.make_partition(parent, (now() at time zone 'UTC')::date + day)
$$;

select make_partitions();
analyze queue;
