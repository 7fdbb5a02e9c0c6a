-- Telling operators about rows that were set aside, in postrider's own database.

-- name: tell_stuck
-- $1 what is told, as JSON. An event of the reserved tenant; see operational_event().
select operational_event('outbox.stuck', $1::text::json);
