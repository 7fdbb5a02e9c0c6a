-- Telling a tenant's contacts.

-- name: take_notice
-- $1 tenants whose notices are left alone for now, $2 messages per tenant and day. Index notice_by_due; locks the notice and
-- its endpoint, and skips those that are locked.
select outcome, endpoint_id, tenant_id, endpoint, url, kind, stage, failing_since, cause, contacts, tries
from take_notice($1::text[], $2::integer)

-- name: finish_notice
-- $1 endpoint, $2 stage, $3 contacts that were not told (an empty array: it is done), $4 seconds until they are tried
-- again. A newer notice that took its place meanwhile stays as it is. Primary key.
with done as (
  delete from notice
  where endpoint_id = $1::uuid
    and stage = $2::integer
    and $3::text[] = '{}'
)
update notice
set contacts = $3::text[],
    due_at = now() + make_interval(secs => $4::integer)
where endpoint_id = $1::uuid
  and stage = $2::integer
  and $3::text[] <> '{}'

-- name: contact_secret
-- $1 tenant
select sealed
from contact_secret
where tenant_id = $1::text
