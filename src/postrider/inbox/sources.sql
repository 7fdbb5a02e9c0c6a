-- Sources of inbound webhooks and their secrets. Few rows; changes lock the source's row first.

-- name: insert_source
-- No row: the ID is taken.
-- not null: all
insert into source (
  id, provider, description, signature, tolerance_seconds, idempotency_key, deduplicate, partition_key, ordering,
  headers, body_bytes_max, consume, forward_tenant_id, forward_type, max_attempts
)
values (
  :id::text, :provider::text, :description?::text, :signature?::jsonb, :tolerance_seconds::integer,
  :idempotency_key?::text, :deduplicate?::text, :partition_key?::text, :ordering::text, :headers::text[],
  :body_bytes_max::integer, :consume::boolean, :forward_tenant?::text, :forward_type?::text, :max_attempts::integer
)
on conflict (id) do nothing
returning id

-- name: update_source
-- Primary key; the row is locked already.
update source
set
  description = :description?::text,
  signature = :signature?::jsonb,
  tolerance_seconds = :tolerance_seconds::integer,
  idempotency_key = :idempotency_key?::text,
  deduplicate = :deduplicate?::text,
  partition_key = :partition_key?::text,
  ordering = :ordering::text,
  headers = :headers::text[],
  body_bytes_max = :body_bytes_max::integer,
  consume = :consume::boolean,
  forward_tenant_id = :forward_tenant?::text,
  forward_type = :forward_type?::text,
  max_attempts = :max_attempts::integer,
  updated_at = now()
where id = :id::text

-- name: lock_source
-- Primary key; locks the row against other changes.
-- not null: all
select provider
from source
where id = :id::text
for no key update

-- name: load_sources
-- Primary key.
-- not null: id, provider, tolerance_seconds, ordering, headers, body_bytes_max, consume, max_attempts, created_at, updated_at
select
  id, provider, description, signature::text as signature, tolerance_seconds, idempotency_key, deduplicate, partition_key, ordering,
  headers, body_bytes_max, consume, forward_tenant_id, forward_type, max_attempts, created_at, updated_at
from source
where id = any(:ids::text[])
order by id

-- name: list_source_ids
-- Primary key.
-- not null: all
select id
from source
where id > :after::text
order by id
limit :rows::integer

-- name: delete_source
-- Deletes its secrets and its counts of rejections as well; its messages stay until they expire.
delete from source
where id = :id::text

-- name: find_tenant
-- Primary key.
-- not null: all
select id
from tenant
where id = :id::text
  and status <> 'deleted'

-- name: source_rejections
-- Primary key.
-- not null: all
select reason, count, last_at, last_detail
from source_rejection
where source_id = :source::text
order by reason

-- name: insert_source_secret
insert into source_secret (id, source_id, sealed)
values (:id::uuid, :source::text, :sealed::bytea)

-- name: load_source_secrets
-- The active secrets, newest first. source_secret_by_source.
-- not null: id, sealed, created_at
select id, sealed, created_at, expires_at
from source_secret
where source_id = :source::text
  and (expires_at is null or expires_at > now())
order by id desc

-- name: start_source_overlap
-- The active secrets expire after `overlap_seconds`, unless they expire before. source_secret_by_source.
update source_secret
set expires_at = now() + make_interval(secs => :overlap_seconds::float8)
where source_id = :source::text
  and (expires_at is null or expires_at > now() + make_interval(secs => :overlap_seconds))

-- name: delete_expired_source_secrets
-- source_secret_by_source.
delete from source_secret
where source_id = :source::text
  and expires_at <= now()

-- name: delete_source_secret
-- Primary key.
delete from source_secret
where id = :id::uuid
  and source_id = :source::text
