-- Sums of the hourly rollups. Runs on connections with custom plans, which use rollup_by_endpoint, rollup_by_tenant or the
-- key, depending on the filters that are given.

-- part: rollups_in_range
from rollup r
where r.hour >= :since::timestamptz
  and r.hour < :until::timestamptz
  and (:tenant?::text is null or r.tenant_id = :tenant)
  and (:endpoint?::uuid is null or r.endpoint_id = :endpoint)
  and (:event_type?::text is null or r.event_type = :event_type)

-- part: sums
sum(r.delivered)::bigint as delivered, sum(r.delivered_attempts)::bigint as delivered_attempts,
sum(r.first_attempt_successes)::bigint as first_attempt_successes, sum(r.retried)::bigint as retried,
sum(r.dead_letters)::bigint as dead, sum(r.canceled)::bigint as canceled, sum(r.exchanges)::bigint as exchanges,
sum(r.latency_us)::bigint as latency_us, max(r.latency_us_max)::bigint as latency_us_max

-- name: stats_by_hour
-- not null: delivered, delivered_attempts, first_attempt_successes, retried, dead, canceled, exchanges, latency_us, latency_us_max
-- row: stats
select r.hour, null::text as tenant_id, null::text as endpoint_public_id, null::text as event_type,
       {{sums}}
{{rollups_in_range}}
group by r.hour
order by r.hour desc
limit :rows::integer

-- name: stats_by_tenant
-- Busiest first.
-- not null: delivered, delivered_attempts, first_attempt_successes, retried, dead, canceled, exchanges, latency_us, latency_us_max
-- row: stats
select null::timestamptz as hour, r.tenant_id, null::text as endpoint_public_id, null::text as event_type,
       {{sums}}
{{rollups_in_range}}
group by r.tenant_id
order by sum(r.exchanges) desc, r.tenant_id
limit :rows::integer

-- name: stats_by_type
-- Busiest first.
-- not null: delivered, delivered_attempts, first_attempt_successes, retried, dead, canceled, exchanges, latency_us, latency_us_max
-- row: stats
select null::timestamptz as hour, null::text as tenant_id, null::text as endpoint_public_id, r.event_type,
       {{sums}}
{{rollups_in_range}}
group by r.event_type
order by sum(r.exchanges) desc, r.event_type
limit :rows::integer

-- name: stats_by_endpoint
-- Most failures first.
-- not null: delivered, delivered_attempts, first_attempt_successes, retried, dead, canceled, exchanges, latency_us, latency_us_max
-- row: stats
select null::timestamptz as hour, s.tenant_id, e.public_id as endpoint_public_id, null::text as event_type,
       s.delivered, s.delivered_attempts, s.first_attempt_successes, s.retried, s.dead, s.canceled, s.exchanges,
       s.latency_us, s.latency_us_max
from (
  select r.tenant_id, r.endpoint_id,
         {{sums}}
  {{rollups_in_range}}
  group by r.tenant_id, r.endpoint_id
  order by sum(r.retried) + sum(r.dead_letters) desc, r.endpoint_id
  limit :rows::integer
) as s
left join endpoint e on e.id = s.endpoint_id
