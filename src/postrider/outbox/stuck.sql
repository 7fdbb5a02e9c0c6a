-- Reports rows that were set aside, in postrider's own database.

-- name: report_stuck
-- An event of the reserved tenant with this data (JSON); see publish_operational_event().
select publish_operational_event('outbox.stuck', :data::text::json) as event_id
