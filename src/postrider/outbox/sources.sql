-- Outboxes in other databases: where they are.

-- name: list_sources
select id, shown_url, database_url_sealed, created_at, updated_at
from outbox_source
order by id;

-- name: find_source
-- $1 id
select id, shown_url, database_url_sealed, created_at, updated_at
from outbox_source
where id = $1::text;

-- name: lock_source
-- $1 id. Locks the row against other changes.
select id, shown_url, database_url_sealed, created_at, updated_at
from outbox_source
where id = $1::text
for no key update;

-- name: put_source
-- $1 id, $2 what people see, $3 sealed URL.
insert into outbox_source as s (id, shown_url, database_url_sealed)
values ($1::text, $2::text, $3::bytea)
on conflict (id) do update
  set shown_url = excluded.shown_url,
      database_url_sealed = excluded.database_url_sealed,
      updated_at = now();

-- name: delete_source
-- $1 id
delete from outbox_source
where id = $1::text;
