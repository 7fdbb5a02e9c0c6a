-- Endpoint health: who is told, and when it ends. Every node with the upkeep role runs these; each change is guarded, so
-- whoever is second does nothing.

-- name: endpoints_to_report
-- $1 seconds of nothing but failure that disable, $2 how many at most. Index endpoint_to_report.
select endpoint_id, was, stage
from endpoints_to_report(make_interval(secs => $1::bigint), $2::integer)

-- name: report_endpoint
-- $1 endpoint, $2 what was reported before, $3 what is reported now, $4 as above. Locks the endpoint.
select report_endpoint($1::uuid, $2::integer, $3::integer, make_interval(secs => $4::bigint))

-- name: report_dead_letters
-- $1 how many rows at most. Index dead_letter_minute_by_time.
select report_dead_letters($1::integer)
