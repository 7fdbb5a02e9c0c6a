-- Mails that ask contacts to confirm.

-- name: take_confirmation
-- $1 mails per tenant and day, $2 per mailbox and day. Index contact_request_by_due; locks the request.
select outcome, tenant_id, address, recipient, tries
from take_confirmation($1::integer, $2::integer)

-- name: finish_confirmation
-- $1 tenant, $2 address, $3 whether it is over, $4 seconds until the next try otherwise. Primary key.
with over as (
  delete from contact_request
  where tenant_id = $1::text
    and address = $2::text
    and $3::boolean
)
update contact_request
set due_at = now() + make_interval(secs => $4::integer)
where tenant_id = $1::text
  and address = $2::text
  and not $3::boolean
