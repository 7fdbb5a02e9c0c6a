-- Sealing values again that were sealed with an older master key. A sealed value carries the id of its key in bytes 2 to 9; the
-- contexts are those it was sealed for.

-- name: outdated_secrets
-- Primary key.
-- not null: all
select
  id::text as shown_id,
  'endpoint_secret/' || endpoint_id::text || '/' || id::text as context,
  sealed
from endpoint_secret
where (:after::text = '' or id > nullif(:after, '')::uuid)
  and substring(sealed from 2 for 8) <> :key::bytea
order by id
limit :limit::integer

-- name: reseal_secrets
-- Primary key; one that was changed meanwhile is not touched.
update endpoint_secret
set sealed = given.after
from unnest(:ids::text[]::uuid[], :before::bytea[], :after::bytea[]) as given (id, before, after)
where endpoint_secret.id = given.id
  and endpoint_secret.sealed = given.before

-- name: outdated_headers
-- Primary key of endpoint.
-- not null: all
select
  id::text as shown_id,
  'endpoint_headers/' || id::text as context,
  headers_sealed as sealed
from endpoint
where (:after::text = '' or id > nullif(:after, '')::uuid)
  and headers_sealed is not null
  and substring(headers_sealed from 2 for 8) <> :key::bytea
order by id
limit :limit::integer

-- name: reseal_headers
-- Primary key; one that was changed meanwhile is not touched.
update endpoint
set headers_sealed = given.after
from unnest(:ids::text[]::uuid[], :before::bytea[], :after::bytea[]) as given (id, before, after)
where endpoint.id = given.id
  and endpoint.headers_sealed = given.before

-- name: outdated_source_secrets
-- Primary key.
-- not null: all
select
  id::text as shown_id,
  'source_secret/' || source_id || '/' || id::text as context,
  sealed
from source_secret
where (:after::text = '' or id > nullif(:after, '')::uuid)
  and substring(sealed from 2 for 8) <> :key::bytea
order by id
limit :limit::integer

-- name: reseal_source_secrets
-- Primary key; one that was changed meanwhile is not touched.
update source_secret
set sealed = given.after
from unnest(:ids::text[]::uuid[], :before::bytea[], :after::bytea[]) as given (id, before, after)
where source_secret.id = given.id
  and source_secret.sealed = given.before

-- name: outdated_outbox_urls
-- As outdated_secrets. Primary key.
-- not null: all
select
  id as shown_id,
  'outbox_database/' || id as context,
  database_url_sealed as sealed
from outbox_database
where id > :after::text
  and substring(database_url_sealed from 2 for 8) <> :key::bytea
order by id
limit :limit::integer

-- name: reseal_outbox_urls
-- As reseal_secrets. Primary key.
update outbox_database
set database_url_sealed = given.after
from unnest(:ids::text[], :before::bytea[], :after::bytea[]) as given (id, before, after)
where outbox_database.id = given.id
  and outbox_database.database_url_sealed = given.before

-- name: outdated_contact_secrets
-- As outdated_secrets. Primary key.
-- not null: all
select
  tenant_id as shown_id,
  'contact_secret/' || tenant_id as context,
  sealed
from contact_secret
where tenant_id > :after::text
  and substring(sealed from 2 for 8) <> :key::bytea
order by tenant_id
limit :limit::integer

-- name: reseal_contact_secrets
-- As reseal_secrets. Primary key.
update contact_secret
set sealed = given.after
from unnest(:ids::text[], :before::bytea[], :after::bytea[]) as given (tenant_id, before, after)
where contact_secret.tenant_id = given.tenant_id
  and contact_secret.sealed = given.before
