-- Outboxes in other databases, and the URLs of these databases.

-- part: shown_source
select id, shown_url, database_url_sealed, created_at, updated_at
from outbox_source

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
-- `shown_url` has no password.
insert into outbox_source as s (id, shown_url, database_url_sealed)
values (:id::text, :shown_url::text, :sealed::bytea)
on conflict (id) do update
  set shown_url = excluded.shown_url,
      database_url_sealed = excluded.database_url_sealed,
      updated_at = now()

-- name: delete_source
-- Primary key.
delete from outbox_source
where id = :id::text
