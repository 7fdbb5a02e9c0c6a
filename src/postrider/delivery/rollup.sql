-- name: add_rollups
-- $1 node; per row $2 hour, $3 tenant, $4 endpoint, $5 type, $6 delivered, $7 their attempts, $8 of them at the first,
-- $9 retried, $10 dead, $11 their attempts, $12 exchanges, $13 latency, $14 its maximum. Each node has rows of its own,
-- so no two wait for each other. What belongs to a closed hour is left out: it was computed from the attempts.
insert into rollup as r (hour, tenant_id, endpoint_id, event_type, node_id, delivered, delivered_attempts,
                         first_attempt_successes, retried, dead, dead_attempts, exchanges, latency_us, latency_us_max)
select t.hour, t.tenant_id, t.endpoint_id, t.event_type, $1::uuid, t.delivered, t.delivered_attempts,
       t.first_attempt_successes, t.retried, t.dead, t.dead_attempts, t.exchanges, t.latency_us, t.latency_us_max
from unnest($2::timestamptz[], $3::text[], $4::uuid[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[],
            $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[])
       as t (hour, tenant_id, endpoint_id, event_type, delivered, delivered_attempts, first_attempt_successes, retried,
             dead, dead_attempts, exchanges, latency_us, latency_us_max)
where not exists (select from rollup_closed c where c.hour = t.hour)
on conflict (hour, tenant_id, endpoint_id, event_type, node_id) do update
set delivered = r.delivered + excluded.delivered,
    delivered_attempts = r.delivered_attempts + excluded.delivered_attempts,
    first_attempt_successes = r.first_attempt_successes + excluded.first_attempt_successes,
    retried = r.retried + excluded.retried,
    dead = r.dead + excluded.dead,
    dead_attempts = r.dead_attempts + excluded.dead_attempts,
    exchanges = r.exchanges + excluded.exchanges,
    latency_us = r.latency_us + excluded.latency_us,
    latency_us_max = greatest(r.latency_us_max, excluded.latency_us_max)
