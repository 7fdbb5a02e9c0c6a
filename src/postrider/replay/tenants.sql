-- The tenants that a replay over all tenants concerns.

-- name: tenants_of_endpoint
-- endpoint_by_public_id. Two rows are enough to know that the ID is ambiguous.
-- not null: all
select tenant_id
from endpoint
where public_id = :public_id::text
  and status <> 'deleted'
limit 2

-- name: tenants_with_dead_letters
-- Tenants with an unresolved dead letter of these causes in this range of delivery IDs. The kept counts and what
-- changed since then say which tenants have any; dead_letter_unresolved says whether one is in the range.
-- not null: all
with counted as (
  select tenant_id
  from (
    select tenant_id, cause, unresolved from dead_letter_count
    union all
    select tenant_id, cause, unresolved from dead_letter_delta
  ) as parts
  where cause = any (:causes::text[])
  group by tenant_id
  having sum(unresolved) > 0
)
select c.tenant_id
from counted c
join tenant t on t.id = c.tenant_id
where t.status <> 'deleted'
  and exists (
    select
    from dead_letter d
    where d.tenant_id = c.tenant_id
      and d.cause = any (:causes)
      and d.resolved_at is null
      and d.delivery_id >= :first::uuid
      and d.delivery_id < :before::uuid
  )
order by c.tenant_id
limit :limit::integer

-- name: tenants_of_dead_letters
-- The unresolved ones of these deliveries, by tenant. The key of dead_letter, in the partitions between :least and
-- :greatest.
-- not null: all
select d.tenant_id, array_agg(d.delivery_id order by d.delivery_id) as delivery_ids
from dead_letter d
join tenant t on t.id = d.tenant_id
where d.delivery_id = any (:ids::uuid[])
  and d.delivery_id >= :least::uuid
  and d.delivery_id <= :greatest::uuid
  and d.resolved_at is null
  and t.status <> 'deleted'
group by d.tenant_id
order by d.tenant_id
limit :limit::integer
