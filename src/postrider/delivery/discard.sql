-- Discards dead letters on request.

-- name: discard_ids
-- $1 deliveries, $2 the smallest, $3 the largest, $4 tenant or null. Returns those that were unresolved. Index: the key.
update dead_letter
set resolved_at = now(),
    resolution = 'discarded'
where delivery_id = any ($1::uuid[])
  and delivery_id >= $2::uuid
  and delivery_id <= $3::uuid
  and ($4::text is null or tenant_id = $4::text)
  and resolved_at is null
returning delivery_id

-- name: discard_some
-- The next $6 unresolved ones: $1 tenant or null, $2 endpoint or null, $3 cause or null, $4 ids below, $5 ids from.
-- Custom plan: dead_letter_unresolved, dead_letter_by_endpoint or the key.
with chosen as (
  select d.delivery_id, d.bucket
  from dead_letter d
  where ($1::text is null or d.tenant_id = $1::text)
    and ($2::uuid is null or d.endpoint_id = $2::uuid)
    and ($3::text is null or d.cause = $3::text)
    and d.delivery_id < $4::uuid
    and d.delivery_id >= $5::uuid
    and d.resolved_at is null
  order by d.delivery_id desc
  limit $6::integer
)
update dead_letter
set resolved_at = now(),
    resolution = 'discarded'
from chosen
where dead_letter.delivery_id = chosen.delivery_id
  and dead_letter.bucket = chosen.bucket
  and dead_letter.resolved_at is null
returning dead_letter.delivery_id
