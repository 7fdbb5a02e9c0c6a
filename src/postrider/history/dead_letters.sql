-- Lists of dead letters, newest first. Runs on connections with custom plans: one statement per filter, never one with
-- optional conditions. Each reads a limited number of rows; the caller applies the rest of its filter.

-- part: dead_letters_in_range
select d.delivery_id, d.tenant_id, d.endpoint_id, d.event_id, d.cause, d.attempts, d.status_code, d.error, d.error_detail,
       d.created_at, d.dead_at, d.resolved_at, d.resolution
from dead_letter d
where d.delivery_id < :before::uuid
  and d.delivery_id >= :from::uuid

-- name: dead_letters_of_all
-- Index: the key of dead_letter.
-- not null: delivery_id, tenant_id, endpoint_id, event_id, cause, attempts, created_at, dead_at
-- row: dead_letter
{{dead_letters_in_range}}
order by d.delivery_id desc
limit :rows::integer

-- name: dead_letters_of_tenant
-- Index: dead_letter_by_tenant.
-- not null: delivery_id, tenant_id, endpoint_id, event_id, cause, attempts, created_at, dead_at
-- row: dead_letter
{{dead_letters_in_range}}
  and d.tenant_id = :tenant::text
order by d.delivery_id desc
limit :rows::integer

-- name: dead_letters_of_endpoint
-- Index: dead_letter_by_endpoint.
-- not null: delivery_id, tenant_id, endpoint_id, event_id, cause, attempts, created_at, dead_at
-- row: dead_letter
{{dead_letters_in_range}}
  and d.endpoint_id = :endpoint::uuid
order by d.delivery_id desc
limit :rows::integer

-- name: unresolved_of_cause
-- Neither replayed nor discarded yet. Index: dead_letter_unresolved.
-- not null: delivery_id, tenant_id, endpoint_id, event_id, cause, attempts, created_at, dead_at
-- row: dead_letter
{{dead_letters_in_range}}
  and d.tenant_id = :tenant::text
  and d.cause = :cause::text
  and d.resolved_at is null
order by d.delivery_id desc
limit :rows::integer

-- name: dead_letter_summary
-- The largest groups of unresolved dead letters, of one tenant or of all (null). Reads the maintained counts, never the
-- dead letters: the largest of dead_letter_count_by_size, and the changes since the counts were summed up. Each change
-- may push one group out of the largest, so that many more are read.
-- not null: tenant_id, cause, unresolved
with changed as materialized (
  select tenant_id, endpoint_id, cause, sum(unresolved) as change
  from dead_letter_delta
  where :tenant?::text is null
     or tenant_id = :tenant
  group by tenant_id, endpoint_id, cause
),
largest as materialized (
  select tenant_id, endpoint_id, cause, unresolved
  from dead_letter_count
  where :tenant is null
     or tenant_id = :tenant
  order by unresolved desc
  limit :rows::integer + (select count(*) from changed)
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
  limit :rows
)
select s.tenant_id, e.public_id, e.url, s.cause, s.unresolved
from summed s
left join endpoint e on e.id = s.endpoint_id
order by s.unresolved desc, s.tenant_id, e.public_id, s.cause
