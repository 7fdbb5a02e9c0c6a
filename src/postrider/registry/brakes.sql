-- The one row of brakes.

-- name: load_brakes
-- not null: is_paused
-- row: brakes
select is_paused, retry_rate_per_second, drain_rate_per_second, reason, changed_by, changed_at
from brakes

-- name: lock_brakes
-- As load_brakes; held to the commit.
-- not null: is_paused
-- row: brakes
select is_paused, retry_rate_per_second, drain_rate_per_second, reason, changed_by, changed_at
from brakes
for no key update

-- name: save_brakes
-- The row is locked already.
update brakes
set is_paused = :is_paused::boolean,
    retry_rate_per_second = :retry_rate_per_second?::float8,
    drain_rate_per_second = :drain_rate_per_second?::float8,
    reason = :reason?::text,
    changed_by = :changed_by::text,
    changed_at = now()
returning changed_at

-- name: load_brake_spans
-- Retention drops those that ended a year ago.
-- not null: since
select since, until
from brake_span
order by since

-- name: begin_brake_span
insert into brake_span (since)
select now()
where not exists (select from brake_span where until is null)

-- name: end_brake_span
update brake_span
set until = now()
where until is null

-- name: note_brakes
select record_change('brakes', null)
