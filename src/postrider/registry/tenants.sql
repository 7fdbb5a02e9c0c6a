-- Tenants. Whatever changes a tenant or its endpoints locks the tenant's row first, so that counts are right.

-- name: insert_tenant
-- No row: the id is taken, perhaps by a deleted tenant.
-- not null: all
insert into tenant (
  id, name, max_in_flight, rate_per_second, publish_rate_per_second, payload_bytes_max, endpoints_max, contacts,
  metadata, status_by, allow_networks
)
values (
  :id::text, :name?::text, :max_in_flight?::integer, :rate_per_second?::float8, :publish_rate_per_second?::float8,
  :payload_bytes_max?::integer, :endpoints_max?::integer, :contacts?::jsonb, :metadata?::jsonb,
  :status_by::text, :allow_networks::text[]::cidr[]
)
on conflict (id) do nothing
returning id

-- name: is_deleted_tenant
-- Primary key.
-- not null: all
select status = 'deleted' as is_deleted
from tenant
where id = :id::text

-- name: lock_tenant
-- Primary key; locks the row against other changes, not against references.
-- not null: all but endpoints_max
select
  status,
  endpoint_count,
  endpoints_max
from tenant
where id = :id::text
  and status <> 'deleted'
for no key update

-- name: load_tenants
-- Primary keys of tenant and contact.
-- not null: id, status, status_since, status_by, endpoint_count, revision, created_at, updated_at, allow_networks
select
  id,
  name,
  max_in_flight,
  rate_per_second,
  publish_rate_per_second,
  payload_bytes_max,
  endpoints_max,
  allow_networks::text[] as allow_networks,
  contacts::text,
  case
    when contacts is not null then (
      select coalesce(json_agg(json_build_object(
               'address', l.contact,
               'confirmed_at', to_char(c.confirmed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
               'unsubscribed_at', to_char(c.unsubscribed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
             ) order by l.place), '[]')::text
      from jsonb_array_elements_text(tenant.contacts) with ordinality as l (contact, place)
      left join contact c on c.tenant_id = tenant.id and c.address = contact_key(l.contact)
    )
  end as contact_states,
  metadata::text,
  status,
  status_reason,
  status_since,
  status_by,
  endpoint_count,
  revision,
  created_at,
  updated_at
from tenant
where id = any(:ids::text[])
  and status <> 'deleted'
order by id

-- name: list_tenant_ids
-- Primary key.
-- not null: all
select id
from tenant
where id > :after::text
  and status <> 'deleted'
order by id
limit :limit::integer

-- name: update_tenant
-- Primary key; the row is locked already.
update tenant
set
  name = :name?::text,
  max_in_flight = :max_in_flight?::integer,
  rate_per_second = :rate_per_second?::float8,
  publish_rate_per_second = :publish_rate_per_second?::float8,
  payload_bytes_max = :payload_bytes_max?::integer,
  endpoints_max = :endpoints_max?::integer,
  allow_networks = :allow_networks::text[]::cidr[],
  contacts = :contacts?::jsonb,
  metadata = :metadata?::jsonb,
  updated_at = now()
where id = :id::text

-- name: set_tenant_status
-- Primary key; the row is locked already.
update tenant
set
  status = :status::text,
  status_by = :actor::text,
  status_reason = :reason?::text,
  status_since = case when status = :status then status_since else now() end,
  updated_at = now()
where id = :id::text

-- name: open_tenant_pause
insert into pause_span (tenant_id)
values (:tenant::text)

-- name: close_tenant_pause
-- pause_span_by_tenant.
update pause_span
set until = now()
where tenant_id = :tenant::text
  and endpoint_id is null
  and until is null

-- name: delete_endpoints_of_tenant
-- endpoint_by_tenant; locks every endpoint of the tenant.
update endpoint
set
  status = 'deleted',
  status_by = :actor::text,
  status_reason = 'the tenant was deleted',
  status_since = now(),
  headers_sealed = null,
  updated_at = now()
where tenant_id = :tenant::text
  and status <> 'deleted'

-- name: delete_secrets_of_tenant
-- endpoint_by_tenant, endpoint_secret_by_endpoint.
delete from endpoint_secret
using endpoint
where endpoint.tenant_id = :tenant::text
  and endpoint_secret.endpoint_id = endpoint.id

-- name: delete_subscriptions_of_tenant
-- Primary key.
delete from subscription
where tenant_id = :tenant::text

-- name: close_pauses_of_tenant
-- pause_span_by_tenant.
update pause_span
set until = now()
where tenant_id = :tenant::text
  and until is null

-- name: revoke_keys_of_tenant
-- Scans api_key, which is small.
update api_key
set revoked_at = now()
where tenant_id = :tenant::text
  and revoked_at is null

-- name: delete_tenant
-- Primary key; the row is locked already.
update tenant
set
  status = 'deleted',
  status_by = :actor::text,
  status_since = now(),
  endpoint_count = 0,
  strict_count = 0,
  updated_at = now()
where id = :id::text
