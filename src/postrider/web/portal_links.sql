-- Links that open the portal of one tenant, once.

-- name: lock_tenant_of_links
-- Primary key. Links of one tenant are created one at a time, so that their number is exact. Not the lock of
-- changes to the tenant: publishing does not wait.
-- not null: all
select pg_advisory_xact_lock(hashtext('postrider portal links'), hashtext(id))::text as locked
from tenant
where id = :tenant::text
  and status <> 'deleted'

-- name: count_unused_links
-- sign_in_link_unused.
-- not null: all
select count(*)
from sign_in_link
where tenant_id = :tenant::text
  and used_at is null
  and expires_at > now()

-- name: insert_portal_link
-- not null: all
insert into sign_in_link (
  id, hash, kind, key_id, tenant_id, is_read_only, payloads, is_preview, session_seconds, label, origin, path, expires_at
)
values (
  :id::uuid, :hash::bytea, 'portal', :key::uuid, :tenant::text, :is_read_only::boolean, :payloads::boolean,
  :is_preview::boolean, :session_seconds::int, :label?::text, :origin?::text, :path?::text,
  now() + make_interval(secs => :seconds::int)
)
returning id

-- name: list_portal_links
-- sign_in_link_by_tenant, newest first; session_by_link for each. One link: with :id.
-- not null: id, tenant_id, is_read_only, payloads, is_preview, session_seconds, created_at, created_by, expires_at
-- row: portal_link
select
  l.id,
  l.tenant_id,
  l.is_read_only,
  l.payloads,
  l.is_preview,
  l.session_seconds,
  l.label,
  l.origin,
  l.path,
  l.created_at,
  l.key_id as created_by,
  l.expires_at,
  l.used_at,
  s.last_seen_at as session_last_seen_at,
  s.expires_at as session_expires_at
from sign_in_link l
left join session s
  on s.link_id = l.id
  and s.expires_at > now()
  and s.last_seen_at + make_interval(secs => s.idle_seconds) > now()
where l.tenant_id = :tenant::text
  and l.id < :before::uuid
  and (:id?::uuid is null or l.id = :id)
order by l.id desc
limit :limit::integer

-- name: delete_portal_link
-- Primary key; its session goes with it.
-- not null: all but label
delete from sign_in_link
where id = :id::uuid
  and tenant_id = :tenant::text
  and kind = 'portal'
returning id, is_preview, label
