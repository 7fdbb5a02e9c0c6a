-- One migration at a time in a database. The number is "postride" in hexadecimal; it must stay as it is.
-- Held by the session, so a lost connection releases it.
-- name: lock
select pg_advisory_lock(x'706f737472696465'::bigint);

-- name: unlock
select pg_advisory_unlock(x'706f737472696465'::bigint);

-- name: find_foundation
select to_regnamespace('postrider') is not null as has_schema,
       exists (
         select
         from pg_class
         where relname = 'migration' and relnamespace = to_regnamespace('postrider')
       ) as has_migration;

-- name: create_schema
create schema postrider;

-- name: create_migration
create table postrider.migration (
  version integer primary key,
  name text not null,
  applied_at timestamptz not null default now(),
  postrider_version text not null
);

-- name: read_version
select coalesce(max(version), 0)
from postrider.migration;

-- $1 version, $2 name, $3 version of postrider
-- Runs in the transaction of the migration itself.
-- name: record_migration
insert into postrider.migration (version, name, postrider_version)
values ($1::integer, $2::text, $3::text);
