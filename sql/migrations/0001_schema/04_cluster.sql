-- Nodes, their leases, what they are sending, and the brakes.

create table node (
  id uuid primary key,
  slot integer not null unique check (slot between 0 and 8191),   -- part of every ID that the node makes
  name text not null,
  version text not null,
  delivers boolean not null,                   -- has the role `delivery`, so it gets buckets
  alive boolean not null default true,
  heartbeat bigint not null default 0,         -- only counts up; other nodes watch it by their own clocks
  started_at timestamptz not null default now(),
  heartbeat_at timestamptz not null default now()   -- for people
) with (fillfactor = 50);

create table bucket_lease (
  bucket integer primary key,
  owner uuid,
  epoch bigint not null default 0,             -- incremented with each new owner
  since timestamptz not null default now(),
  served_until timestamptz                     -- of a free bucket: the last sign of life of the node that had it
) with (fillfactor = 50);
insert into bucket_lease (bucket) select generate_series(0, {{buckets}} - 1);

-- Times during which no node served a bucket. A delivery whose deadline is in one of them gets one attempt before it
-- expires.
create table unserved_span (
  id bigint generated always as identity primary key,
  bucket integer not null,
  since timestamptz not null,
  until timestamptz not null default now()
);
create index unserved_span_by_bucket on unserved_span (bucket, until);
create index unserved_span_ended on unserved_span (until);

-- Deliveries that each node has been sending for a second or longer; up to two seconds old. Written apart from settle, and
-- only when it changes. A logged table, so that the views can also be read on a standby.
create table node_in_flight (
  node_id uuid primary key references node on delete cascade,
  delivery_ids uuid[] not null,
  buckets integer[] not null,                        -- of each delivery
  changed_at timestamptz not null default now()
) with (fillfactor = 50);

-- Only of nodes that are alive and still own the bucket.
create view in_flight as
select sent.id, sent.bucket, f.node_id
from node_in_flight f
join node n on n.id = f.node_id and n.alive
cross join unnest(f.delivery_ids, f.buckets) as sent (id, bucket)
join bucket_lease l on l.bucket = sent.bucket and l.owner = f.node_id;

-- What the due deliveries of an endpoint have been waiting for, for a second or longer, if only the owner of its bucket
-- knows it; see delivery_wait. Written apart from settle, and only when it changes. A row of an earlier epoch means nothing.
create table lane_wait (
  endpoint_id uuid not null,
  is_retry boolean not null,                         -- of its retries, or of its first attempts (all of a strict endpoint)
  bucket integer not null,
  epoch bigint not null,                             -- of the lease under which it was written
  reason text not null check (reason in ('rate', 'in_flight_cap', 'brake')),
  since timestamptz not null default now(),
  primary key (endpoint_id, is_retry)
) with (fillfactor = 50);

-- ── brakes ───────────────────────────────────────────────────────────────────────────────────────────────────────────

-- For incidents; they apply to the whole cluster. Nodes learn of a change through the control log.
create table brakes (
  singleton boolean primary key default true check (singleton),
  is_paused boolean not null default false,          -- all deliveries wait
  retry_rate_per_second double precision check (retry_rate_per_second > 0),
  drain_rate_per_second double precision check (drain_rate_per_second > 0),
  reason text,
  changed_by text,
  changed_at timestamptz
);
insert into brakes default values;
-- Times during which all deliveries were paused. They do not count against give_up_seconds.
create table brake_span (
  id bigint generated always as identity primary key,
  since timestamptz not null default now(),
  until timestamptz
);
create index brake_span_ended on brake_span (until);
