-- Sessions of browsers, and the links that open them.

-- name: find_session
-- Primary key, then api_key's. Microseconds until the session or its key ends, if that is within a day.
-- not null: all but tenant_id, rate_per_second, expires_in_us
select
  session.hash,
  session.id as session_id,
  session.kind,
  session.expires_at,
  api_key.id,
  api_key.role,
  api_key.is_token,
  api_key.is_read_only,
  api_key.tenant_id,
  api_key.payloads,
  api_key.rate_per_second,
  case
    when least(session.expires_at, api_key.expires_at) < now() + interval '1 day'
      then (extract(epoch from least(session.expires_at, api_key.expires_at) - now()) * 1000000)::bigint
  end as expires_in_us
from session
join api_key on api_key.id = session.key_id
where session.hash = :hash::bytea
  and session.expires_at > now()
  and session.last_seen_at + make_interval(secs => session.idle_seconds) > now()
  and api_key.revoked_at is null
  and (api_key.expires_at is null or api_key.expires_at > now())

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
insert into session (hash, id, kind, key_id, link_id, tenant_id, is_read_only, idle_seconds, expires_at, address)
select
  :hash::bytea,
  :id::uuid,
  :kind::text,
  api_key.id,
  :link?::uuid,
  :tenant?::text,
  :is_read_only::boolean,
  :idle_seconds::int,
  least(now() + make_interval(secs => :seconds::int), api_key.expires_at),
  :address?::text
from api_key
where api_key.id = :key::uuid
returning expires_at

-- name: delete_session
-- Primary key.
-- not null: all
delete from session
where hash = :hash::bytea
returning id, key_id

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

-- name: insert_link
-- not null: all
insert into sign_in_link (
  id, hash, kind, key_id, tenant_id, is_read_only, session_seconds, label, expires_at
)
values (
  :id::uuid, :hash::bytea, :kind::text, :key::uuid, :tenant?::text, :is_read_only::boolean,
  :session_seconds::int, :label?::text, now() + make_interval(secs => :seconds::int)
)
returning expires_at

-- name: use_link
-- sign_in_link_hash_key (unique), then the primary key of api_key. No row: unknown, expired, used, or of a key that has
-- ended. Locks the row, so that of two requests one wins.
-- not null: all but tenant_id, label
update sign_in_link
set used_at = now()
where hash = :hash::bytea
  and kind = :kind::text
  and used_at is null
  and expires_at > now()
  and key_id in (
    select api_key.id
    from api_key
    where api_key.revoked_at is null
      and (api_key.expires_at is null or api_key.expires_at > now())
  )
returning id, hash, key_id, tenant_id, is_read_only, session_seconds, label
