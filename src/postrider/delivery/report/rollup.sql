-- name: add_rollups
-- Adds counts to the rows of this node; each node has its own, so that no two wait for each other. Counts of a closed
-- hour are left out: that hour was computed from the attempts.
insert into rollup as r (hour, tenant_id, endpoint_id, event_type, node_id, delivered, delivered_attempts,
                         first_attempt_successes, retried, dead_letters, dead_letter_attempts, exchanges, latency_us,
                         latency_us_max)
select t.hour, t.tenant_id, t.endpoint_id, t.event_type, :node::uuid, t.delivered, t.delivered_attempts,
       t.first_attempt_successes, t.retried, t.dead_letters, t.dead_letter_attempts, t.exchanges, t.latency_us,
       t.latency_us_max
from unnest(:hours::timestamptz[], :tenants::text[], :endpoints::uuid[], :event_types::text[], :delivered::bigint[],
            :delivered_attempts::bigint[], :first_attempt_successes::bigint[], :retrying::bigint[],
            :dead_letters::bigint[], :dead_letter_attempts::bigint[], :exchanges::bigint[], :latency_us::bigint[],
            :latency_us_max::bigint[])
       as t (hour, tenant_id, endpoint_id, event_type, delivered, delivered_attempts, first_attempt_successes, retried,
             dead_letters, dead_letter_attempts, exchanges, latency_us, latency_us_max)
where not exists (select from rollup_closed c where c.hour = t.hour)
on conflict (hour, tenant_id, endpoint_id, event_type, node_id) do update
set delivered = r.delivered + excluded.delivered,
    delivered_attempts = r.delivered_attempts + excluded.delivered_attempts,
    first_attempt_successes = r.first_attempt_successes + excluded.first_attempt_successes,
    retried = r.retried + excluded.retried,
    dead_letters = r.dead_letters + excluded.dead_letters,
    dead_letter_attempts = r.dead_letter_attempts + excluded.dead_letter_attempts,
    exchanges = r.exchanges + excluded.exchanges,
    latency_us = r.latency_us + excluded.latency_us,
    latency_us_max = greatest(r.latency_us_max, excluded.latency_us_max)
