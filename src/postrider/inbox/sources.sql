-- Sources of inbound webhooks and their secrets. Few rows; changes lock the source's row first.

-- name: insert_source
-- $1 id, $2 provider, then the settings. No row: the id is taken.
insert into source (
  id, provider, description, signature, tolerance_seconds, idempotency_key, deduplicate, partition_key, ordering,
  headers, body_bytes_max, consume, forward_tenant_id, forward_type, max_attempts
)
values (
  $1::text, $2::text, $3::text, $4::jsonb, $5::integer, $6::text, $7::text, $8::text, $9::text, $10::text[],
  $11::integer, $12::boolean, $13::text, $14::text, $15::integer
)
on conflict (id) do nothing
returning id

-- name: update_source
-- $1 id, then the settings. Primary key; the row is locked already.
update source
set
  description = $2::text,
  signature = $3::jsonb,
  tolerance_seconds = $4::integer,
  idempotency_key = $5::text,
  deduplicate = $6::text,
  partition_key = $7::text,
  ordering = $8::text,
  headers = $9::text[],
  body_bytes_max = $10::integer,
  consume = $11::boolean,
  forward_tenant_id = $12::text,
  forward_type = $13::text,
  max_attempts = $14::integer,
  updated_at = now()
where id = $1::text

-- name: lock_source
-- $1 id. Primary key; locks the row against other changes.
select provider
from source
where id = $1::text
for no key update

-- name: load_sources
-- $1 ids. Primary key.
select
  id, provider, description, signature::text, tolerance_seconds, idempotency_key, deduplicate, partition_key, ordering,
  headers, body_bytes_max, consume, forward_tenant_id, forward_type, max_attempts, created_at, updated_at
from source
where id = any($1::text[])
order by id

-- name: list_source_ids
-- $1 the last id of the page before, $2 limit. Primary key.
select id
from source
where id > $1::text
order by id
limit $2::integer

-- name: delete_source
-- $1 id. Takes its secrets and its count of rejections with it; its messages stay until they expire.
delete from source
where id = $1::text

-- name: tenant_is_there
-- $1 id. Primary key.
select id
from tenant
where id = $1::text
  and status <> 'deleted'

-- name: source_rejections
-- $1 source. Primary key.
select reason, count, last_at, last_detail
from source_rejection
where source_id = $1::text
order by reason

-- name: insert_source_secret
-- $1 id, $2 source, $3 sealed.
insert into source_secret (id, source_id, sealed)
values ($1::uuid, $2::text, $3::bytea)

-- name: load_source_secrets
-- $1 source; the active ones, the newest first. source_secret_by_source.
select id, sealed, created_at, expires_at
from source_secret
where source_id = $1::text
  and (expires_at is null or expires_at > now())
order by id desc

-- name: start_source_overlap
-- $1 source, $2 seconds: what is active now ends then. source_secret_by_source.
update source_secret
set expires_at = now() + make_interval(secs => $2::float8)
where source_id = $1::text
  and (expires_at is null or expires_at > now() + make_interval(secs => $2::float8))

-- name: delete_expired_source_secrets
-- $1 source. source_secret_by_source.
delete from source_secret
where source_id = $1::text
  and expires_at <= now()

-- name: delete_source_secret
-- $1 source, $2 secret. Primary key.
delete from source_secret
where id = $2::uuid
  and source_id = $1::text
