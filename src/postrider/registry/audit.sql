-- Who did what.

-- name: write_audit
-- $1 actor kind, $2 actor, $3 action, $4 tenant or null, $5 object, $6 before, $7 after, $8 reason, $9 address,
-- $10 request id.
select write_audit(
  $1::text, $2::text, $3::text, $4::text, $5::text, $6::jsonb, $7::jsonb, $8::text, $9::text, $10::text
)

-- name: list_audit
-- $1 tenant, $2 actor, $3 action, $4 object, $5 since (inclusive), $6 until (exclusive): each may be null; $7, $8 time
-- and id of the last row of the page before, $9 limit. Newest first. Run with custom plans: the index of whichever
-- filter is given, audit_by_time if none.
select
  id,
  at,
  actor_kind,
  actor,
  action,
  tenant_id,
  object,
  before::text,
  after::text,
  reason,
  address,
  request_id
from audit
where ($1::text is null or tenant_id = $1)
  and ($2::text is null or actor = $2)
  and ($3::text is null or action = $3)
  and ($4::text is null or object = $4)
  and ($5::timestamptz is null or at >= $5)
  and ($6::timestamptz is null or at < $6)
  and (at, id) < ($7::timestamptz, $8::bigint)
order by at desc, id desc
limit $9::integer
