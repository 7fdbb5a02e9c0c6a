-- Inbound webhooks: sources, and the inbox of their messages.
--
-- `inbox` is the record: one row per message, in daily partitions by ID. `inbox_queue` has the work that is left: one small
-- row per message and kind of work (consume: a consumer claims it; forward: postrider publishes it). `inbox_key` prevents
-- that a message is stored twice; a partitioned table could not. `inbox_content` does the same for the signed content, if
-- the ID is not signed and could be changed in a recorded request.

create table source (
  id text collate "C" primary key,
  provider text not null
    check (provider in ('standard', 'svix', 'stripe', 'github', 'shopify', 'slack', 'twilio', 'hmac')),
  description text,
  signature jsonb,                             -- of provider hmac: header, prefix, template, hash, encoding, …
  tolerance_seconds integer not null default 300,
  idempotency_key text,                        -- name of a header, or a JSON pointer; null: the provider's default
  deduplicate text check (deduplicate in ('content', 'id')),  -- null: the provider's default
  partition_key text,                          -- name of a header, or a JSON pointer; null: none
  ordering text not null default 'none' check (ordering in ('none', 'strict')),
  headers text[] not null default '{}',        -- stored besides the provider's usual headers
  body_bytes_max integer not null default 1048576,
  consume boolean not null default true,       -- consumers claim its messages
  forward_tenant_id text collate "C" references tenant (id),
  forward_type text,                           -- template of the event type, such as stripe.{type}
  max_attempts integer not null default 8,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  check ((forward_tenant_id is null) = (forward_type is null)),
  check (consume or forward_tenant_id is not null)
);

create table source_secret (
  id uuid primary key,
  source_id text collate "C" not null references source (id) on delete cascade,
  sealed bytea not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz                       -- end of the overlap; null: accepted until it is deleted
);
create index source_secret_by_source on source_secret (source_id);

-- Rejected requests, for operators; senders learn no details. Counted in memory and written every few seconds.
create table source_rejection (
  source_id text collate "C" not null references source (id) on delete cascade,
  reason text collate "C" not null,
  count bigint not null,
  last_at timestamptz not null,
  last_detail text not null,
  primary key (source_id, reason)
);

create table inbox (
  id uuid not null,
  source_id text collate "C" not null,
  provider_id text,                            -- the sender's idempotency key; null: it sent none
  partition_key text,
  bucket integer not null,                     -- hash of the partition key, otherwise of the ID
  headers json not null,                       -- the stored ones, names in lower case
  body text not null,                          -- the exact bytes
  status text not null default 'pending' check (status in ('pending', 'done', 'dead', 'discarded')),
  attempts integer not null default 0,         -- of the work that ended last
  last_error text,
  event_id text collate "C",                   -- the event as which it was forwarded
  received_at timestamptz not null default now(),
  done_at timestamptz,
  dead_at timestamptz,                         -- null again after a retry; indexed instead of status, so
  dead_work text[],                            -- that finishing a message updates no index
  primary key (id)
) partition by range (id);
create index inbox_by_source on inbox (source_id, id);
create index inbox_dead on inbox (source_id, id) where dead_at is not null;

create table inbox_key (
  source_id text collate "C" not null,
  key text collate "C" not null check (octet_length(key) <= 255),
  id uuid not null,
  primary key (source_id, key)
);
create index inbox_key_by_id on inbox_key (id);  -- for retention

create table inbox_content (
  source_id text collate "C" not null,
  digest bytea not null check (octet_length(digest) = 32),
  topics text[] collate "C" not null check (cardinality(topics) between 1 and 8),
  ids uuid[] not null,                         -- the message of each topic
  id uuid not null,                            -- the newest message
  primary key (source_id, digest)
);
create index inbox_content_by_id on inbox_content (id);  -- for retention

create table inbox_queue (
  id uuid not null,
  work text collate "C" not null check (work in ('consume', 'forward')),
  bucket integer not null,
  source_id text collate "C" not null,
  partition_key text collate "C",
  is_ordered boolean not null,                 -- has a partition key, and its source is strict
  position bigint generated always as identity,
  due_at timestamptz not null,                 -- the end of the lease, if there is one
  attempts integer not null default 0,
  leased_by text,
  last_error text,
  primary key (id, work, bucket)
) with (
  vacuum_truncate = off,
  autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_insert_threshold = -1,
  autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_threshold = 50000
);
create index inbox_queue_due on inbox_queue (source_id, work, is_ordered, due_at, position);
create index inbox_queue_heads on inbox_queue (source_id, work, bucket, partition_key, position) where is_ordered;

-- Sentinel rows, as in queue: the planner must never see it empty.
insert into inbox_queue (id, work, bucket, source_id, partition_key, is_ordered, due_at)
select gen_random_uuid(), 'consume', -1, '', n::text, n % 2 = 0, 'infinity'
from generate_series(1, 5000) as n;

do $$
begin
  alter table inbox alter column body set compression lz4;
exception when feature_not_supported then
  raise notice 'this server was built without lz4: inbox bodies are compressed with pglz';
end
$$;
