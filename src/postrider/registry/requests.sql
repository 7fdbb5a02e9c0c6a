-- What functions in SQL have asked for: their callers decide when they commit, so they hold none of postrider's locks.

-- name: limit_lock_wait
-- For this transaction only.
select set_config('lock_timeout', '1s', true)

-- name: record_requested_changes
-- Some at a time. Locks: as record_change.
select record_requested_changes(200)

-- name: create_requested_replay
-- The oldest replay: whether there was one. Locks: as create_replay().
-- not null: all
select create_requested_replay() as was_made
