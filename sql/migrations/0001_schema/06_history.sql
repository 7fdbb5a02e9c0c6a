-- The history: attempts, dead letters, their counts, and rollups.

create table attempt (
  delivery_id uuid not null,
  -- 1, 2, …; 0: the delivery ended without a request; -1, -2, …: its first, second, … failed probe, which used no attempt.
  -- The key is the same for all of them.
  attempt integer not null,
  bucket integer not null,
  endpoint_id uuid not null,
  event_id uuid not null,
  tenant_id text collate "C" not null,
  outcome text not null check (outcome in ('delivered', 'retrying', 'dead_letter', 'canceled')),
  status_code integer,
  error text,                                  -- a code: timeout_first_byte, tls_certificate_expired, …
  error_detail text,                           -- a sentence for people
  started_at timestamptz not null,
  lookup_us integer,
  connect_us integer,
  tls_us integer,
  first_byte_us integer,
  total_us integer not null,
  send_us integer,
  url_version integer,                         -- of the endpoint's URL that was dialled; see former_url
  bytes_sent integer,                          -- of the request, head and body
  bytes_received integer,                      -- of the response's body
  flags smallint not null default 0,           -- sum of 1: connection reused, 2: sent again because the reused connection
                                               -- was closed, 4: the response has more than the preview
  content_type text,                           -- of the response
  response_headers text,                       -- redacted, one "name: value" per line; null for a 2xx
  preview text,                                -- first bytes of the response, redacted
  address text,
  next_attempt_at timestamptz,
  node_id uuid not null,
  created_at timestamptz not null,             -- when the delivery was created
  replay_id uuid,
  is_probe boolean not null default false,     -- sent while the breaker was open
  probed_attempt integer,                      -- of a failed probe: the number that it was sent with (webhook-attempt)
  is_kept boolean not null default false       -- as in event
) partition by list (is_kept);
create table attempt_day partition of attempt (primary key (delivery_id, attempt, bucket))
  for values in (false) partition by range (delivery_id);
create table attempt_kept partition of attempt (primary key (delivery_id, attempt, bucket)) for values in (true);
create index attempt_by_endpoint on attempt (endpoint_id, delivery_id);
create index attempt_by_tenant on attempt (tenant_id, delivery_id);
create index attempt_not_delivered on attempt (tenant_id, outcome, delivery_id) where outcome <> 'delivered';
-- Partial, so that an ordinary delivery pays only for checking the condition.
create index attempt_canceled on attempt (delivery_id) where outcome = 'canceled';
create index attempt_replayed on attempt (event_id, delivery_id) where replay_id is not null;
-- Finds the attempts of an hour, to compute its rollup, and skips the days without deliveries of a time range. Attempts are
-- appended in about this order, so the index is tiny and almost free.
create index attempt_by_time on attempt using brin (started_at, created_at)
  with (pages_per_range = 16, autosummarize = on);

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
-- For rows that retention has to keep, of a day's events and of a day's deliveries.
create index dead_letter_unresolved_by_event on dead_letter (event_id) where resolved_at is null;
create index dead_letter_unresolved_by_id on dead_letter (delivery_id) where resolved_at is null;

-- ── counts of dead letters ───────────────────────────────────────────────────────────────────────────────────────────

-- Numbers of unresolved dead letters, by tenant, endpoint and cause. Changes are appended to dead_letter_delta and summed
-- up by upkeep, so that transactions never wait for each other here. The sum of both tables is always correct.
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
create trigger dead_letter_inserted after insert on dead_letter
referencing new table as fresh for each statement execute function count_new_dead_letters();
create trigger dead_letter_resolved after update on dead_letter
referencing old table as stale new table as fresh for each statement execute function count_resolved_dead_letters();

-- Dead letters by endpoint and minute, until they are reported; written with the dead letters themselves.
create table dead_letter_minute (
  endpoint_id uuid not null,
  minute timestamptz not null,
  cause text not null,
  dead_letters bigint not null,
  primary key (endpoint_id, minute, cause)
) with (fillfactor = 70);
create index dead_letter_minute_by_time on dead_letter_minute (minute);

-- ── rollups ──────────────────────────────────────────────────────────────────────────────────────────────────────────

-- Counts by the hour in which the attempt began. A node counts in memory and writes its own rows every 10 seconds. A few
-- minutes after the end of an hour its rows are computed again from `attempt`, with node 0, and the hour is closed.
create table rollup (
  hour timestamptz not null,
  tenant_id text collate "C" not null,
  endpoint_id uuid not null,
  event_type text collate "C" not null,
  node_id uuid not null,
  delivered bigint not null default 0,
  delivered_attempts bigint not null default 0,      -- attempts of these deliveries
  first_attempt_successes bigint not null default 0,
  retried bigint not null default 0,                 -- attempts that failed and are retried
  dead_letters bigint not null default 0,
  dead_letter_attempts bigint not null default 0,
  canceled bigint not null default 0,
  exchanges bigint not null default 0,
  latency_us bigint not null default 0,              -- sum over all exchanges
  latency_us_max bigint not null default 0,
  primary key (hour, tenant_id, endpoint_id, event_type, node_id)
) with (fillfactor = 70);
create index rollup_by_endpoint on rollup (endpoint_id, hour);
create index rollup_by_tenant on rollup (tenant_id, hour);

create table rollup_closed (
  hour timestamptz primary key,
  closed_at timestamptz not null default now()
);
