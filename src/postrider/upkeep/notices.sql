-- Notices to a tenant's contacts.

-- name: take_notice
-- `busy` are tenants whose notices are skipped; `per_tenant` is a cap per day. Index notice_by_due; locks the notice and its
-- endpoint, and skips those that are locked. A notice that is dropped may have no contacts any more.
-- not null: outcome, endpoint_id, tenant_id, endpoint, url, kind, stage, tries
select outcome, endpoint_id, tenant_id, endpoint, url, kind, stage, failing_since, cause, contacts, tries
from take_notice(:busy::text[], :per_tenant::integer)

-- name: finish_notice
-- Schedules a retry for the contacts that were not reached (`unreached`), or deletes the notice if there are none. A newer
-- notice that has replaced it stays unchanged. Primary key.
with done as (
  delete from notice
  where endpoint_id = :endpoint::uuid
    and stage = :stage::integer
    and :unreached::text[] = '{}'
)
update notice
set contacts = :unreached,
    due_at = now() + make_interval(secs => :retry_seconds::integer)
where endpoint_id = :endpoint
  and stage = :stage
  and :unreached <> '{}'

-- name: contact_secret
-- Primary key.
-- not null: all
select sealed
from contact_secret
where tenant_id = :tenant::text
