-- Tenants. Whatever changes a tenant or its endpoints locks the tenant's row first, so that counts are right.

-- name: insert_tenant
-- $1 id, then the settings. No row: the id is taken, perhaps by a deleted tenant.
insert into tenant (
  id, name, max_in_flight, rate_per_second, publish_rate_per_second, payload_bytes_max, endpoints_max, contacts,
  metadata
)
values (
  $1::text, $2::text, $3::integer, $4::float8, $5::float8, $6::integer, $7::integer, $8::jsonb, $9::jsonb
)
on conflict (id) do nothing
returning id

-- name: is_deleted_tenant
-- $1 id. Primary key.
select status = 'deleted'
from tenant
where id = $1::text

-- name: lock_tenant
-- $1 id. Primary key; locks the row against other changes, not against references.
select
  status,
  endpoint_count,
  endpoints_max
from tenant
where id = $1::text
  and status <> 'deleted'
for no key update

-- name: load_tenants
-- $1 ids. Primary key.
select
  id,
  name,
  max_in_flight,
  rate_per_second,
  publish_rate_per_second,
  payload_bytes_max,
  endpoints_max,
  contacts::text,
  metadata::text,
  status,
  status_reason,
  status_since,
  endpoint_count,
  revision,
  created_at,
  updated_at
from tenant
where id = any($1::text[])
  and status <> 'deleted'
order by id

-- name: list_tenant_ids
-- $1 the last id of the page before, $2 limit. Primary key.
select id
from tenant
where id > $1::text
  and status <> 'deleted'
order by id
limit $2::integer

-- name: update_tenant
-- $1 id, then the settings. Primary key; the row is locked already.
update tenant
set
  name = $2::text,
  max_in_flight = $3::integer,
  rate_per_second = $4::float8,
  publish_rate_per_second = $5::float8,
  payload_bytes_max = $6::integer,
  endpoints_max = $7::integer,
  contacts = $8::jsonb,
  metadata = $9::jsonb,
  updated_at = now()
where id = $1::text

-- name: set_tenant_status
-- $1 id, $2 status, $3 reason. Primary key; the row is locked already.
update tenant
set
  status = $2::text,
  status_reason = $3::text,
  status_since = case when status = $2::text then status_since else now() end,
  updated_at = now()
where id = $1::text

-- name: open_tenant_pause
-- $1 tenant.
insert into pause_span (tenant_id)
values ($1::text)

-- name: close_tenant_pause
-- $1 tenant. pause_span_by_tenant.
update pause_span
set until = now()
where tenant_id = $1::text
  and endpoint_id is null
  and until is null

-- name: delete_endpoints_of_tenant
-- $1 tenant. endpoint_by_outside_id; locks every endpoint of the tenant.
update endpoint
set
  status = 'deleted',
  status_reason = 'the tenant was deleted',
  status_since = now(),
  headers_sealed = null,
  updated_at = now()
where tenant_id = $1::text
  and status <> 'deleted'

-- name: delete_secrets_of_tenant
-- $1 tenant. endpoint_by_outside_id, endpoint_secret_by_endpoint.
delete from endpoint_secret
using endpoint
where endpoint.tenant_id = $1::text
  and endpoint_secret.endpoint_id = endpoint.id

-- name: delete_subscriptions_of_tenant
-- $1 tenant. Primary key.
delete from subscription
where tenant_id = $1::text

-- name: close_pauses_of_tenant
-- $1 tenant. pause_span_by_tenant.
update pause_span
set until = now()
where tenant_id = $1::text
  and until is null

-- name: revoke_keys_of_tenant
-- $1 tenant. Scans api_key, which is small.
update api_key
set revoked_at = now()
where tenant_id = $1::text
  and revoked_at is null

-- name: delete_tenant
-- $1 tenant. Primary key; the row is locked already.
update tenant
set
  status = 'deleted',
  status_since = now(),
  endpoint_count = 0,
  strict_count = 0,
  updated_at = now()
where id = $1::text
