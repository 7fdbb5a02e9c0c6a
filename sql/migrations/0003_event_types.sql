-- Event types, their versions and schemas; what endpoints need for If-Match and for canceling what is pending.

-- Counts up with every change of what people configure, so that If-Match can refuse a change of something that is
-- not what the caller saw. Health and counters do not count.
alter table endpoint add column revision integer not null default 1;
alter table tenant add column revision integer not null default 1;

-- Deliveries created up to then are to be canceled; set by a person, done and reset by the node that owns the bucket.
alter table endpoint add column cancel_before timestamptz;

-- The catalogue: what kinds of events there are, and what their data looks like.
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
  place integer not null,                      -- oldest first; the last one is the latest
  schema text,                                 -- JSON Schema as it was given; text, because jsonb changes numbers
  example text,                                -- JSON that fits the schema
  deprecated_at timestamptz,                   -- customers should have left it by then
  primary key (type_name, version)
);
