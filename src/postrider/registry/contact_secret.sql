-- The secret that signs notices to a tenant's URLs.

-- name: set_contact_secret
-- Primary key.
insert into contact_secret (tenant_id, sealed)
values (:tenant::text, :sealed::bytea)
on conflict (tenant_id) do update
  set sealed = excluded.sealed,
      created_at = now()

-- name: insert_contact_secret
-- The secret of a tenant that has none yet. No row: it has one. Primary key.
-- not null: all
insert into contact_secret (tenant_id, sealed)
values (:tenant::text, :sealed::bytea)
on conflict (tenant_id) do nothing
returning tenant_id
