-- Sets a session up.

-- name: apply_settings
-- One round trip, whatever the number of settings.
select set_config(name, value, false) as applied
from unnest(:names::text[], :settings::text[]) as setting (name, value);

-- name: ask_timeline
-- The timeline is the head of the WAL file name; it changes when a standby is promoted.
-- not null: all
select case when pg_is_in_recovery() then '' else left(pg_walfile_name(pg_current_wal_lsn()), 8) end as timeline;
