-- Outboxes in other databases, and the URLs of these databases.

-- part: shown_source
select id, display_url, database_url_sealed, created_at, updated_at
from outbox_database

-- name: list_sources
-- not null: all
-- row: source
{{shown_source}}
order by id

-- name: find_source
-- Primary key.
-- not null: all
-- row: source
{{shown_source}}
where id = :id::text

-- name: lock_source
-- Primary key; locks the row against other changes.
-- not null: all
-- row: source
{{shown_source}}
where id = :id::text
for no key update

-- name: put_source
-- `display_url` has no password.
insert into outbox_database as s (id, display_url, database_url_sealed)
values (:id::text, :display_url::text, :sealed::bytea)
on conflict (id) do update
  set display_url = excluded.display_url,
      database_url_sealed = excluded.database_url_sealed,
      updated_at = now()

-- name: delete_source
-- Primary key.
delete from outbox_database
where id = :id::text
