-- Dead letters, newest first, at most so many rows at a time; the caller filters further.

-- name: dead_letters_of_all
-- $1 ids below, $2 ids from, $3 rows. Index: the key of dead_letter.
select d.delivery_id, d.tenant_id, d.endpoint_id, d.event_id, d.cause, d.attempts, d.status_code, d.error,
       d.error_detail, d.created_at, d.dead_at, d.resolved_at, d.resolution
from dead_letter d
where d.delivery_id < $1::uuid
  and d.delivery_id >= $2::uuid
order by d.delivery_id desc
limit $3::integer

-- name: dead_letters_of_tenant
-- As dead_letters_of_all, $4 tenant. Index: dead_letter_by_tenant.
select d.delivery_id, d.tenant_id, d.endpoint_id, d.event_id, d.cause, d.attempts, d.status_code, d.error,
       d.error_detail, d.created_at, d.dead_at, d.resolved_at, d.resolution
from dead_letter d
where d.tenant_id = $4::text
  and d.delivery_id < $1::uuid
  and d.delivery_id >= $2::uuid
order by d.delivery_id desc
limit $3::integer

-- name: dead_letters_of_endpoint
-- As dead_letters_of_all, $4 endpoint. Index: dead_letter_by_endpoint.
select d.delivery_id, d.tenant_id, d.endpoint_id, d.event_id, d.cause, d.attempts, d.status_code, d.error,
       d.error_detail, d.created_at, d.dead_at, d.resolved_at, d.resolution
from dead_letter d
where d.endpoint_id = $4::uuid
  and d.delivery_id < $1::uuid
  and d.delivery_id >= $2::uuid
order by d.delivery_id desc
limit $3::integer

-- name: unresolved_of_cause
-- As dead_letters_of_all, $4 tenant, $5 cause, and nobody has seen to it yet. Index: dead_letter_unresolved.
select d.delivery_id, d.tenant_id, d.endpoint_id, d.event_id, d.cause, d.attempts, d.status_code, d.error,
       d.error_detail, d.created_at, d.dead_at, d.resolved_at, d.resolution
from dead_letter d
where d.tenant_id = $4::text
  and d.cause = $5::text
  and d.resolved_at is null
  and d.delivery_id < $1::uuid
  and d.delivery_id >= $2::uuid
order by d.delivery_id desc
limit $3::integer

-- name: dead_letter_summary
-- $1 tenant or null for all, $2 rows. Reads counts that are kept, never the letters: the largest of
-- dead_letter_count_by_size and whatever has changed since they were summed up. Each change may push one of the
-- largest out, so as many more are read.
with changed as materialized (
  select tenant_id, endpoint_id, cause, sum(unresolved) as change
  from dead_letter_delta
  where $1::text is null
     or tenant_id = $1::text
  group by tenant_id, endpoint_id, cause
),
largest as materialized (
  select tenant_id, endpoint_id, cause, unresolved
  from dead_letter_count
  where $1::text is null
     or tenant_id = $1::text
  order by unresolved desc
  limit $2::integer + (select count(*) from changed)
),
summed as (
  select tenant_id, endpoint_id, cause, sum(unresolved)::bigint as unresolved
  from (
    select tenant_id, endpoint_id, cause, unresolved from largest
    union all
    select tenant_id, endpoint_id, cause, change from changed
    union all
    select c.tenant_id, c.endpoint_id, c.cause, c.unresolved
    from changed
    join dead_letter_count c using (tenant_id, endpoint_id, cause)
    where not exists (
      select
      from largest l
      where l.tenant_id = c.tenant_id and l.endpoint_id = c.endpoint_id and l.cause = c.cause
    )
  ) as parts
  group by tenant_id, endpoint_id, cause
  having sum(unresolved) > 0
  order by sum(unresolved) desc, tenant_id, endpoint_id, cause
  limit $2::integer
)
select s.tenant_id, e.public_id, e.url, s.cause, s.unresolved
from summed s
left join endpoint e on e.id = s.endpoint_id
order by s.unresolved desc, s.tenant_id, e.public_id, s.cause
