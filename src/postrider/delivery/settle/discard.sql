-- Discards dead letters on request. Each statement returns those that were unresolved.

-- name: discard_ids
-- Without a tenant, dead letters of any tenant. Index: the key; `smallest` and `largest` prune days.
-- not null: all
update dead_letter
set resolved_at = now(),
    resolution = 'discarded'
where delivery_id = any (:deliveries::uuid[])
  and delivery_id >= :smallest::uuid
  and delivery_id <= :largest::uuid
  and (:tenant?::text is null or tenant_id = :tenant)
  and resolved_at is null
returning delivery_id

-- name: discard_some
-- The next unresolved ones, from the newest to the oldest.
-- Custom plan: dead_letter_unresolved, dead_letter_by_endpoint or the key.
-- not null: all
with chosen as (
  select d.delivery_id, d.bucket
  from dead_letter d
  where (:tenant?::text is null or d.tenant_id = :tenant)
    and (:endpoint?::uuid is null or d.endpoint_id = :endpoint)
    and (:cause?::text is null or d.cause = :cause)
    and d.delivery_id < :before::uuid
    and d.delivery_id >= :from::uuid
    and d.resolved_at is null
  order by d.delivery_id desc
  limit :rows_max::integer
)
update dead_letter
set resolved_at = now(),
    resolution = 'discarded'
from chosen
where dead_letter.delivery_id = chosen.delivery_id
  and dead_letter.bucket = chosen.bucket
  and dead_letter.resolved_at is null
returning dead_letter.delivery_id
