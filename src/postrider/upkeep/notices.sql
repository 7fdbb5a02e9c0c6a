-- Notices to a tenant's contacts.

-- name: take_notice
-- `busy` are tenants whose notices are skipped; `per_tenant` is a cap per day. Index notice_by_due; locks the notice and its
-- endpoint, and skips those that are locked. A notice that is dropped may have no contacts any more.
-- not null: outcome, endpoint_id, tenant_id, endpoint, url, kind, stage, tries
select outcome, endpoint_id, tenant_id, endpoint, url, kind, stage, attempts, failed, failing_since, cause, contacts, tries
from take_notice(:busy::text[], :per_tenant::integer)

-- name: finish_notice
-- Schedules a retry for the contacts that were not reached (`unreached`), or deletes the notice if there are none. A newer
-- notice that has replaced it stays unchanged. Primary key.
with done as (
  delete from notice
  where endpoint_id = :endpoint::uuid
    and kind = :kind::text
    and stage = :stage::integer
    and :unreached::text[] = '{}'
)
update notice
set contacts = :unreached,
    due_at = now() + make_interval(secs => :retry_seconds::integer)
where endpoint_id = :endpoint
  and kind = :kind
  and stage = :stage
  and :unreached <> '{}'

-- name: take_dead_letter_notice
-- Like take_notice, for the dead letters of a tenant. Index dead_letter_notice_by_due; locks the notice and the endpoints that
-- it lists. `content` is JSON.
-- not null: outcome, tenant_id, tries
select outcome, tenant_id, content, contacts, tries
from take_dead_letter_notice(:busy::text[], :per_tenant::integer)

-- name: finish_dead_letter_notice
-- Schedules a retry for the contacts that were not reached, or the next notice if there are dead letters to report. Primary
-- keys.
update dead_letter_notice n
set contacts = :unreached::text[],
    content = case when :unreached <> '{}' then n.content end,
    tries = case when :unreached <> '{}' then n.tries else 0 end,
    due_at = case
      when :unreached <> '{}' then now() + make_interval(secs => :retry_seconds::integer)
      when exists (select from dead_letter_unnotified u where u.tenant_id = n.tenant_id) then n.notified_at + interval '1 day'
    end
where n.tenant_id = :tenant::text

-- name: contact_networks
-- Primary key.
-- not null: all
select allow_networks::text[] as allow_networks
from tenant
where id = :tenant::text

-- name: contact_secret
-- Primary key.
-- not null: all
select sealed
from contact_secret
where tenant_id = :tenant::text
