-- Sessions of browsers, and the links that open them.

-- name: find_session
-- Primary keys of session, api_key, sign_in_link and tenant. Microseconds until the session or its key ends, if that is
-- within a day. A session of a link for the portal has a customer's rights in the link's tenant, whatever its key may do.
-- not null: all but portal_link_id, label, tenant_id, rate_per_second, expires_in_us
select
  session.hash,
  session.id as session_id,
  session.kind,
  session.expires_at,
  session.is_preview,
  api_key.id,
  case when sign_in_link.id is null then api_key.role else 'customer' end as role,
  api_key.is_token,
  api_key.is_read_only or session.is_read_only as is_read_only,
  coalesce(session.tenant_id, api_key.tenant_id) as tenant_id,
  api_key.payloads and session.payloads as payloads,
  api_key.rate_per_second,
  sign_in_link.id as portal_link_id,
  sign_in_link.label,
  case
    when least(session.expires_at, api_key.expires_at) < now() + interval '1 day'
      then (extract(epoch from least(session.expires_at, api_key.expires_at) - now()) * 1000000)::bigint
  end as expires_in_us
from session
join api_key on api_key.id = session.key_id
left join sign_in_link on sign_in_link.id = session.link_id and sign_in_link.kind = 'portal'
left join tenant on tenant.id = session.tenant_id
where session.hash = :hash::bytea
  and session.expires_at > now()
  and session.last_seen_at + make_interval(secs => session.idle_seconds) > now()
  and api_key.revoked_at is null
  and (api_key.expires_at is null or api_key.expires_at > now())
  and (session.tenant_id is null or tenant.status <> 'deleted')

-- name: note_session_use
-- Primary key. At most one write per session and minute; one that another transaction has locked is skipped.
update session
set last_seen_at = now()
where hash = (
    select hash
    from session
    where hash = :hash::bytea
      and last_seen_at < now() - interval '1 minute'
      and last_seen_at + make_interval(secs => idle_seconds) > now()
    for update skip locked
  )

-- name: insert_session
-- It ends with its key at the latest.
-- not null: all
insert into session (
  hash, id, kind, key_id, link_id, tenant_id, is_read_only, payloads, is_preview, idle_seconds, expires_at, address
)
select
  :hash::bytea,
  :id::uuid,
  :kind::text,
  api_key.id,
  :link?::uuid,
  :tenant?::text,
  :is_read_only::boolean,
  :payloads::boolean,
  :is_preview::boolean,
  :idle_seconds::int,
  least(now() + make_interval(secs => :seconds::int), api_key.expires_at),
  :address?::text
from api_key
where api_key.id = :key::uuid
returning expires_at

-- name: delete_session
-- Primary key, then sign_in_link's.
-- not null: all but portal_link_id, label, tenant_id
delete from session
where hash = :hash::bytea
returning
  id,
  kind,
  key_id,
  tenant_id,
  is_preview,
  (select l.id from sign_in_link l where l.id = session.link_id and l.kind = 'portal') as portal_link_id,
  (select l.label from sign_in_link l where l.id = session.link_id) as label

-- name: delete_ended_sessions
-- session_by_expiry. A few at a time, whenever a session is opened; those that others delete are skipped.
delete from session
where hash in (
    select hash
    from session
    where expires_at < now()
    order by expires_at
    limit 100
    for update skip locked
  )

-- name: delete_ended_links
-- sign_in_link_by_expiry. Links are kept for a week after their end, and their sessions with them.
delete from sign_in_link
where id in (
    select id
    from sign_in_link
    where expires_at < now() - interval '8 days'
    order by expires_at
    limit 100
    for update skip locked
  )

-- name: insert_console_link
-- not null: all
insert into sign_in_link (id, hash, kind, key_id, session_seconds, expires_at)
values (
  :id::uuid, :hash::bytea, 'console', :key::uuid, :session_seconds::int, now() + make_interval(secs => :seconds::int)
)
returning expires_at

-- name: use_link
-- sign_in_link_hash_key (unique), then the primary keys of api_key and tenant. No row: unknown, expired, used, of a key that
-- has ended, or of a tenant that was deleted. Locks the row, so that of two requests one wins.
-- not null: all but tenant_id, label, origin, path, key_tenant_id
update sign_in_link
set used_at = now()
from api_key
where sign_in_link.hash = :hash::bytea
  and sign_in_link.kind = :kind::text
  and sign_in_link.used_at is null
  and sign_in_link.expires_at > now()
  and api_key.id = sign_in_link.key_id
  and api_key.revoked_at is null
  and (api_key.expires_at is null or api_key.expires_at > now())
  and (
    sign_in_link.tenant_id is null
    or exists (
      select
      from tenant
      where tenant.id = sign_in_link.tenant_id
        and tenant.status <> 'deleted'
    )
  )
returning
  sign_in_link.id,
  sign_in_link.key_id,
  sign_in_link.tenant_id,
  sign_in_link.is_read_only,
  sign_in_link.payloads,
  sign_in_link.is_preview,
  sign_in_link.session_seconds,
  sign_in_link.label,
  sign_in_link.origin,
  sign_in_link.path,
  api_key.role as key_role,
  api_key.tenant_id as key_tenant_id
