-- Sums of the hourly rollups. Custom plans: rollup_by_endpoint, rollup_by_tenant or the key, by what is given.

-- name: stats_by_hour
-- $1 since, $2 until, $3 tenant, $4 endpoint, $5 type (each may be null), $6 rows
select r.hour, null::text, null::text, null::text, sum(r.delivered)::bigint, sum(r.delivered_attempts)::bigint,
       sum(r.first_attempt_successes)::bigint, sum(r.retried)::bigint, sum(r.dead)::bigint, sum(r.canceled)::bigint,
       sum(r.exchanges)::bigint, sum(r.latency_us)::bigint, max(r.latency_us_max)::bigint
from rollup r
where r.hour >= $1::timestamptz
  and r.hour < $2::timestamptz
  and ($3::text is null or r.tenant_id = $3::text)
  and ($4::uuid is null or r.endpoint_id = $4::uuid)
  and ($5::text is null or r.event_type = $5::text)
group by r.hour
order by r.hour desc
limit $6::integer

-- name: stats_by_tenant
-- As stats_by_hour; the busiest first.
select null::timestamptz, r.tenant_id, null::text, null::text, sum(r.delivered)::bigint,
       sum(r.delivered_attempts)::bigint, sum(r.first_attempt_successes)::bigint, sum(r.retried)::bigint,
       sum(r.dead)::bigint, sum(r.canceled)::bigint, sum(r.exchanges)::bigint, sum(r.latency_us)::bigint,
       max(r.latency_us_max)::bigint
from rollup r
where r.hour >= $1::timestamptz
  and r.hour < $2::timestamptz
  and ($3::text is null or r.tenant_id = $3::text)
  and ($4::uuid is null or r.endpoint_id = $4::uuid)
  and ($5::text is null or r.event_type = $5::text)
group by r.tenant_id
order by sum(r.exchanges) desc, r.tenant_id
limit $6::integer

-- name: stats_by_type
-- As stats_by_hour; the busiest first.
select null::timestamptz, null::text, null::text, r.event_type, sum(r.delivered)::bigint,
       sum(r.delivered_attempts)::bigint, sum(r.first_attempt_successes)::bigint, sum(r.retried)::bigint,
       sum(r.dead)::bigint, sum(r.canceled)::bigint, sum(r.exchanges)::bigint, sum(r.latency_us)::bigint,
       max(r.latency_us_max)::bigint
from rollup r
where r.hour >= $1::timestamptz
  and r.hour < $2::timestamptz
  and ($3::text is null or r.tenant_id = $3::text)
  and ($4::uuid is null or r.endpoint_id = $4::uuid)
  and ($5::text is null or r.event_type = $5::text)
group by r.event_type
order by sum(r.exchanges) desc, r.event_type
limit $6::integer

-- name: stats_by_endpoint
-- As stats_by_hour; those with the most failures first.
select null::timestamptz, s.tenant_id, e.public_id, null::text, s.delivered, s.delivered_attempts,
       s.first_attempt_successes, s.retried, s.dead, s.canceled, s.exchanges, s.latency_us, s.latency_us_max
from (
  select r.tenant_id, r.endpoint_id, sum(r.delivered)::bigint as delivered,
         sum(r.delivered_attempts)::bigint as delivered_attempts,
         sum(r.first_attempt_successes)::bigint as first_attempt_successes, sum(r.retried)::bigint as retried,
         sum(r.dead)::bigint as dead, sum(r.canceled)::bigint as canceled, sum(r.exchanges)::bigint as exchanges,
         sum(r.latency_us)::bigint as latency_us, max(r.latency_us_max)::bigint as latency_us_max
  from rollup r
  where r.hour >= $1::timestamptz
    and r.hour < $2::timestamptz
    and ($3::text is null or r.tenant_id = $3::text)
    and ($4::uuid is null or r.endpoint_id = $4::uuid)
    and ($5::text is null or r.event_type = $5::text)
  group by r.tenant_id, r.endpoint_id
  order by sum(r.retried) + sum(r.dead) desc, r.endpoint_id
  limit $6::integer
) as s
left join endpoint e on e.id = s.endpoint_id
