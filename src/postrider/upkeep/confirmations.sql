-- Confirmation mails to contacts.

-- name: take_confirmation
-- The caps are mails per day. Index contact_request_by_due; locks the request.
-- not null: all but recipient
select outcome, tenant_id, address, recipient, tries
from take_confirmation(:per_tenant::integer, :per_address::integer)

-- name: finish_confirmation
-- Deletes the request if it is done, otherwise schedules the next try. Primary key.
with done as (
  delete from contact_request
  where tenant_id = :tenant::text
    and address = :address::text
    and :is_done::boolean
)
update contact_request
set due_at = now() + make_interval(secs => :retry_seconds::integer)
where tenant_id = :tenant
  and address = :address
  and not :is_done
