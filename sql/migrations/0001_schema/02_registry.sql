-- The registry: tenants, endpoints, secrets, subscriptions, event types and API keys.

-- Like the setting, a list cannot open every address. A null element would be unreadable.
create function is_allow_list(networks cidr[]) returns boolean immutable language sql as $$
  select cardinality(networks) <= 32
     and array_position(networks, null) is null
     and not networks && '{0.0.0.0/0,::/0}'
$$;

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
  -- Private networks that its URLs may reach, besides those of the setting allow_networks. For operators to choose.
  allow_networks cidr[] not null default '{}' check (is_allow_list(allow_networks)),
  contacts jsonb check (jsonb_typeof(contacts) = 'array'),   -- addresses; `contact` has their state
  metadata jsonb,
  endpoint_count integer not null default 0,   -- without deleted ones; decides whether fan-out is wide
  strict_count integer not null default 0,     -- of these, strict ones; if 0, publish skips the pass for them
  revision integer not null default 1,         -- for If-Match, see 03_changes.sql
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);

-- The reserved tenant. Its events report to operators what happens to the endpoints of other tenants. Any endpoint of it can
-- subscribe; only postrider publishes to it, and nothing is reported about it.
insert into tenant (id, name, status_by) values ('postrider', 'postrider itself', 'postrider');

create table endpoint (
  id uuid primary key,
  public_id text collate "C" not null,        -- 'ep_' || hex of id, or a custom ID
  tenant_id text collate "C" not null references tenant (id),
  bucket integer not null,
  delivery_tail text collate "C" not null,     -- last 12 hex digits of every delivery ID of this endpoint
  url text not null,
  url_version integer not null default 1,      -- incremented when the URL changes; an attempt has it in place of the URL
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
  headers_sealed bytea,                        -- custom headers, an encrypted JSON object
  allow_networks cidr[] not null default '{}' check (is_allow_list(allow_networks)),  -- besides the tenant's
  metadata jsonb,
  failing_since timestamptz,                   -- first failure without a success since
  last_success_at timestamptz,
  last_failure_at timestamptz,
  breaker text not null default 'closed' check (breaker in ('closed', 'open')),
  breaker_since timestamptz,                   -- when it last opened
  next_probe_at timestamptz,                   -- while the breaker is open
  last_probe_at timestamptz,                   -- last failed probe; null: none since the last success
  last_probe_error text,
  held_reason text,                            -- why deliveries are held; null: they are not
  held_since timestamptz,
  failures integer not null default 0,         -- failed exchanges since failing_since; up to a minute old
  reported_stage integer not null default 0,   -- 0 nothing, 1 failing, 2 failing for first_notice_after, 50, 70, 90 percent
                                               -- of the time until it is disabled, 100 disabled
  notified_stage integer not null default 0,   -- the same, as the tenant's contacts know it
  notified_at timestamptz,                     -- at most one notice an hour, of any kind
  degraded_since timestamptz,                  -- reported because too many attempts of an hour failed
  outage_ended_at timestamptz,                 -- success after an outage of stage 2 or more
  pause_reported_at timestamptz,               -- a pause by postrider was reported to the contacts
  cancel_before timestamptz,                   -- deliveries created up to then are canceled by the bucket's owner, which
                                               -- then resets it
  cancel_reason text,                          -- why retention set cancel_before; null: a person did
  waiting_reported_at timestamptz,             -- when operators were warned that deliveries will be canceled
  revision integer not null default 1,         -- for If-Match, see 03_changes.sql
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create unique index endpoint_by_tenant on endpoint (tenant_id, public_id);
-- With the same tail, two endpoints of a tenant would get the same delivery ID for one event.
create unique index endpoint_by_tail on endpoint (tenant_id, delivery_tail);
create index endpoint_by_bucket on endpoint (bucket);
-- For IDs that are given without a tenant.
create index endpoint_by_public_id on endpoint (public_id);
-- "Which endpoints are at hooks.example.com?"
create index endpoint_by_host on endpoint ((substring(url from '://([^/:?#]+)')));
create index endpoint_to_report on endpoint (id)
  where (status = 'active' and (failing_since is not null or reported_stage > 0)) or (status = 'disabled' and reported_stage < 100);
create index endpoint_degraded on endpoint (id) where degraded_since is not null;
create index endpoint_paused_by_postrider on endpoint (id) where status = 'paused' and status_by = 'postrider';
create index endpoint_waiting_reported on endpoint (id) where waiting_reported_at is not null;

-- URLs that an endpoint had before, for the attempts that dialled them. Kept as long as attempts.
create table former_url (
  endpoint_id uuid not null references endpoint (id),
  version integer not null,
  url text not null,
  until timestamptz not null default now(),
  primary key (endpoint_id, version)
);
create index former_url_by_time on former_url (until);

create function keep_former_url() returns trigger language plpgsql set search_path = postrider, pg_temp as $$
begin
  insert into former_url (endpoint_id, version, url) values (old.id, old.url_version, old.url);
  new.url_version := old.url_version + 1;
  return new;
end
$$;
create trigger endpoint_url_changed before update of url on endpoint
for each row when (old.url <> new.url) execute function keep_former_url();

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
  since timestamptz not null default now(),    -- of its present state; earlier ones are in subscription_span
  created_at timestamptz not null default now(),
  primary key (tenant_id, pattern, endpoint_id)
);
create index subscription_by_endpoint on subscription (endpoint_id);

-- Times during which an endpoint was paused, or a whole tenant (endpoint_id null). They do not count against
-- give_up_seconds.
create table pause_span (
  id bigint generated always as identity primary key,
  tenant_id text collate "C" not null references tenant (id),
  endpoint_id uuid references endpoint (id),
  since timestamptz not null default now(),
  until timestamptz
);
create index pause_span_by_tenant on pause_span (tenant_id, endpoint_id);
create index pause_span_ended on pause_span (until) where until is not null;

create table api_key (
  id uuid primary key,
  hash bytea not null unique,                  -- SHA-256 of the key
  role text not null check (role in ('admin', 'operator', 'customer', 'publisher', 'reader')),
  is_token boolean not null default false,     -- a customer's, for minutes to days
  is_read_only boolean not null default false, -- of a customer: its reading half alone
  tenant_id text collate "C" references tenant (id),
  payloads boolean not null default true,
  description text,
  owner text,                                  -- the person or program that uses it; of a token its label
  rate_per_second double precision,            -- requests of this key per node; null: no limit
  created_by text,                             -- public ID of the key that created it; null: postrider
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  check (role <> 'customer' or tenant_id is not null),
  check (not (is_token or is_read_only) or role = 'customer')
);
create index api_key_by_tenant on api_key (tenant_id, id);

-- ── the catalogue ────────────────────────────────────────────────────────────────────────────────────────────────────

create table event_type (
  name text collate "C" primary key,
  description text,
  validation text not null default 'off' check (validation in ('off', 'warn', 'reject')),
  revision integer not null default 1,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);

create table event_type_version (
  type_name text collate "C" not null references event_type (name) on delete cascade,
  version text collate "C" not null,
  position integer not null,                   -- oldest first; the last one is the latest
  schema text,                                 -- JSON Schema as given; text, because jsonb changes numbers
  example text,                                -- JSON that matches the schema
  deprecated_at timestamptz,                   -- from then on customers should use a later version
  primary key (type_name, version)
);

-- ── earlier states of endpoints and subscriptions ────────────────────────────────────────────────────────────────────

-- They explain why an endpoint did not receive an event: its state when the event was published.

-- Times during which an endpoint was disabled; until null: it still is.
create table disabled_span (
  id bigint generated always as identity primary key,
  endpoint_id uuid not null,
  since timestamptz not null default now(),
  until timestamptz
);
create index disabled_span_by_endpoint on disabled_span (endpoint_id);
create index disabled_span_ended on disabled_span (until) where until is not null;

create function record_disabled_span() returns trigger language plpgsql set search_path = postrider, pg_temp as $$
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
  for each row when ((old.status = 'disabled') <> (new.status = 'disabled')) execute function record_disabled_span();

-- Earlier states of subscriptions. `subscription` has the current one, and since when.
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

create function record_subscription_span() returns trigger language plpgsql set search_path = postrider, pg_temp as $$
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
  execute function record_subscription_span();
create trigger subscription_deleted before delete on subscription
  for each row execute function record_subscription_span();
