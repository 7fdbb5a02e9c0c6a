-- The secret that signs notices to a tenant's URLs.

-- name: set_contact_secret
-- $1 tenant, $2 sealed. Primary key.
insert into contact_secret (tenant_id, sealed)
values ($1::text, $2::bytea)
on conflict (tenant_id) do update
  set sealed = excluded.sealed,
      created_at = now()
