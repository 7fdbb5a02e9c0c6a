-- The catalogue of event types.

-- name: load_event_types
-- $1 the last name of the page before, $2 limit, $3 the one name wanted or null. Primary keys.
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
    coalesce(array_agg(e.version order by e.place), '{}') as versions,
    coalesce(array_agg(e.schema order by e.place), '{}') as schemas,
    coalesce(array_agg(e.example order by e.place), '{}') as examples,
    coalesce(array_agg(e.deprecated_at order by e.place), '{}') as deprecated_at
  from event_type_version e
  where e.type_name = t.name
) as v
where t.name > $1::text
  and ($3::text is null or t.name = $3)
order by t.name
limit $2::integer

-- name: lock_event_type
-- $1 name. Primary key; locks the row.
select revision
from event_type
where name = $1::text
for update

-- name: count_event_types
-- Scans event_type, which is small.
select count(*)::integer
from event_type

-- name: upsert_event_type
-- $1 name, $2 description, $3 validation.
insert into event_type as t (name, description, validation)
values ($1::text, $2::text, $3::text)
on conflict (name) do update
set
  description = excluded.description,
  validation = excluded.validation,
  revision = t.revision + 1,
  updated_at = now()

-- name: delete_event_type_versions
-- $1 name. Primary key.
delete from event_type_version
where type_name = $1::text

-- name: insert_event_type_versions
-- $1 name, then arrays of one length: $2 versions, $3 schemas, $4 examples, $5 deprecated_at.
insert into event_type_version (type_name, version, place, schema, example, deprecated_at)
select
  $1::text,
  given.version,
  given.place,
  given.schema,
  given.example,
  given.deprecated_at
from unnest($2::text[], $3::text[], $4::text[], $5::timestamptz[])
  with ordinality as given (version, schema, example, deprecated_at, place)

-- name: delete_event_type
-- $1 name. Primary key; its versions go with it.
delete from event_type
where name = $1::text
