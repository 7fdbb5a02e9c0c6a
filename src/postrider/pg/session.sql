-- Sets a session up.

-- name: apply_settings
-- One round trip for any number of settings.
select set_config(name, value, false) as applied
from unnest(:names::text[], :settings::text[]) as setting (name, value);

-- name: ask_server
-- The timeline is the head of the WAL file name; it changes when a standby is promoted. With its start time, a backend is
-- not confused with a later one that has its process ID.
-- not null: all
select case when pg_is_in_recovery() then '' else left(pg_walfile_name(pg_current_wal_lsn()), 8) end as timeline,
       (select a.backend_start from pg_stat_get_activity(pg_backend_pid()) a) as backend_started_at;
