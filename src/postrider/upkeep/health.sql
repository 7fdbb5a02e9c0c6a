-- Endpoint health: reporting failing endpoints, and disabling them. Every node with the upkeep role runs these; each change
-- is guarded, so the second node does nothing.

-- name: endpoints_to_report
-- An endpoint that only fails for `disable_seconds` is disabled; the contacts hear of it after `first_seconds`. Index
-- endpoint_to_report.
-- not null: all
select endpoint_id, was, stage
from endpoints_to_report(make_interval(secs => :disable_seconds::bigint), make_interval(secs => :first_seconds::bigint),
                         :first_failures::integer, :rows::integer)

-- name: report_endpoint
-- Reports the change from one stage to another; null if another node has done so. Locks the endpoint.
select report_endpoint(:endpoint::uuid, :was::integer, :stage::integer,
                       make_interval(secs => :disable_seconds::bigint)) as event_type

-- name: report_pauses
-- Reports endpoints that postrider has paused to their contacts. Index endpoint_paused_by_postrider.
-- not null: all
select report_pauses(:rows::integer) as reported

-- name: endpoints_to_degrade
-- Reads the rollups of the last two hours by their primary key. Index endpoint_degraded.
-- not null: all
select endpoint_id, is_degraded, attempts, failed
from endpoints_to_degrade(:below::integer, :attempts_min::integer, :rows::integer)

-- name: report_degraded
-- Null if another node has reported it. Locks the endpoint.
select report_degraded(:endpoint::uuid, :is_degraded::boolean, :attempts::integer, :failed::integer) as event_type

-- name: report_dead_letters
-- Index dead_letter_minute_by_time.
-- not null: all
select report_dead_letters(:rows::integer) as reported
