-- Endpoint health: reporting failing endpoints, and disabling them. Every node with the upkeep role runs these; each change
-- is guarded, so the second node does nothing.

-- name: endpoints_to_report
-- An endpoint that only fails for `disable_seconds` is disabled. Index endpoint_to_report.
-- not null: all
select endpoint_id, was, stage
from endpoints_to_report(make_interval(secs => :disable_seconds::bigint), :rows::integer)

-- name: report_endpoint
-- Reports the change from one stage to another; null if another node has done so. Locks the endpoint.
select report_endpoint(:endpoint::uuid, :was::integer, :stage::integer,
                       make_interval(secs => :disable_seconds::bigint)) as event_type

-- name: report_dead_letters
-- Index dead_letter_minute_by_time.
-- not null: all
select report_dead_letters(:rows::integer) as reported
