-- The one row of brakes.

-- name: load_brakes
select is_paused, retry_rate_per_second, drain_rate_per_second, reason, changed_by, changed_at
from brakes

-- name: lock_brakes
-- As load_brakes; held to the commit.
select is_paused, retry_rate_per_second, drain_rate_per_second, reason, changed_by, changed_at
from brakes
for no key update

-- name: save_brakes
-- $1 paused, $2 retry rate, $3 drain rate, $4 reason, $5 actor. The row is locked already.
update brakes
set is_paused = $1::boolean,
    retry_rate_per_second = $2::float8,
    drain_rate_per_second = $3::float8,
    reason = $4::text,
    changed_by = $5::text,
    changed_at = now()
returning changed_at

-- name: note_brakes
select note_change('brakes', null)
