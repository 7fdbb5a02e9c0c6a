-- Sets a session up: one round trip, whatever the number of settings.
-- $1 names, $2 values
-- name: apply_settings
select set_config(name, value, false)
from unnest($1::text[], $2::text[]) as setting (name, value);

-- The timeline is the head of the WAL file name; it changes when a standby is promoted.
-- name: ask_timeline
select case when pg_is_in_recovery() then '' else left(pg_walfile_name(pg_current_wal_lsn()), 8) end;
