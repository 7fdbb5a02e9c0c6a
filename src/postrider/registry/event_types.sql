-- The catalogue of event types.

-- name: load_event_types
-- All types, or the one with :name. Primary keys.
-- not null: all but description
-- null elements: schemas, examples, deprecated_at
select
  t.name,
  t.description,
  t.validation,
  t.revision,
  t.created_at,
  t.updated_at,
  v.versions,
  v.schemas,
  v.examples,
  v.deprecated_at
from event_type t
cross join lateral (
  select
    coalesce(array_agg(e.version order by e.position), '{}') as versions,
    coalesce(array_agg(e.schema order by e.position), '{}') as schemas,
    coalesce(array_agg(e.example order by e.position), '{}') as examples,
    coalesce(array_agg(e.deprecated_at order by e.position), '{}') as deprecated_at
  from event_type_version e
  where e.type_name = t.name
) as v
where t.name > :after::text
  and (:name?::text is null or t.name = :name)
order by t.name
limit :limit::integer

-- name: lock_event_type
-- Primary key; locks the row.
-- not null: all
select revision
from event_type
where name = :name::text
for update

-- name: count_event_types
-- Scans event_type, which is small.
-- not null: all
select count(*)::integer
from event_type

-- name: upsert_event_type
insert into event_type as t (name, description, validation)
values (:name::text, :description?::text, :validation::text)
on conflict (name) do update
set
  description = excluded.description,
  validation = excluded.validation,
  revision = t.revision + 1,
  updated_at = now()

-- name: delete_event_type_versions
-- Primary key.
delete from event_type_version
where type_name = :name::text

-- name: insert_event_type_versions
-- Arrays of one length.
insert into event_type_version (type_name, version, position, schema, example, deprecated_at)
select
  :name::text,
  given.version,
  given.position,
  given.schema,
  given.example,
  given.deprecated_at
from unnest(:versions::text[], :schemas::text[], :examples::text[], :deprecated_at::timestamptz[])
  with ordinality as given (version, schema, example, deprecated_at, position)

-- name: delete_event_type
-- Primary key; its versions go with it.
delete from event_type
where name = :name::text
