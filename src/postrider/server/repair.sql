-- Completes a repair of the schema.

-- name: grant_all
-- Tables and views that were created again have no grants.
select grant_outbox(), grant_consumer(), grant_support();

-- name: fill_rows
-- Rows that the schema is created with, where a table was created again or emptied. Returns the tables that lacked some.
-- not null: all
with leases as (
  insert into session_lease (name)
  values ('relay'), ('retention'), ('refanout'), ('dead_letter_count')
  on conflict do nothing
  returning 'session_lease' as name
),
kept as (
  insert into kept_since (name, since, below)
  values ('events', '-infinity', '00000000-0000-0000-0000-000000000000'),
         ('attempts', '-infinity', '00000000-0000-0000-0000-000000000000')
  on conflict do nothing
  returning 'kept_since' as name
),
buckets as (
  insert into bucket_lease (bucket)
  select generate_series(0, s.value::integer - 1)
  from setting s
  where s.name = 'buckets'
  on conflict do nothing
  returning 'bucket_lease' as name
),
version as (
  insert into registry_version (version)
  select coalesce(max(l.version), 0)
  from control_log l
  on conflict do nothing
  returning 'registry_version' as name
),
outbox as (
  insert into outbox_setting default values
  on conflict do nothing
  returning 'outbox_setting' as name
),
slot as (
  insert into outbox_slot default values
  on conflict do nothing
  returning 'outbox_slot' as name
),
brake as (
  insert into brakes default values
  on conflict do nothing
  returning 'brakes' as name
)
select f.name
from (
  select name from leases
  union
  select name from kept
  union
  select name from buckets
  union
  select name from version
  union
  select name from outbox
  union
  select name from slot
  union
  select name from brake
) as f
order by f.name;
