-- name: lock_migrations
-- One migration at a time in a database: the session that holds this reads the version, migrates and commits. Only the table's
-- owner may lock it, and reading it waits for nothing.
lock table postrider.migration in share row exclusive mode;

-- name: find_foundation
-- not null: all
select to_regnamespace('postrider') is not null as has_schema,
       exists (
         select
         from pg_class
         where relname = 'migration' and relnamespace = to_regnamespace('postrider')
       ) as has_migration;

-- name: create_schema
create schema if not exists postrider;

-- name: create_migration
create table if not exists postrider.migration (
  version integer primary key,
  name text not null,
  applied_at timestamptz not null default now(),
  postrider_version text not null,
  oldest_binary integer not null
);

-- name: read_version
-- A binary runs on the schema if it knows the version `oldest_binary`.
-- not null: all
select coalesce(max(version), 0) as version, coalesce(max(oldest_binary), 0) as oldest_binary
from postrider.migration;

-- name: record_migration
-- Runs in the transaction of the migration itself.
insert into postrider.migration (version, name, postrider_version, oldest_binary)
values (:version::integer, :name::text, :postrider_version::text, :oldest_binary::integer);
