-- Sealing again what was sealed with an older master key. A sealed value carries the id of its key in bytes 2 to 9; the
-- contexts are those it was sealed for.

-- name: outdated_secrets
-- $1 the last id seen, $2 id of the current key, $3 how many at most. Primary key.
select
  id,
  'endpoint_secret/' || endpoint_id::text as context,
  sealed
from endpoint_secret
where id > $1::uuid
  and substring(sealed from 2 for 8) <> $2::bytea
order by id
limit $3::integer

-- name: reseal_secrets
-- $1 ids, $2 as they were, $3 as they are to be. Primary key; one that was changed meanwhile is left alone.
update endpoint_secret
set sealed = given.after
from unnest($1::uuid[], $2::bytea[], $3::bytea[]) as given (id, before, after)
where endpoint_secret.id = given.id
  and endpoint_secret.sealed = given.before

-- name: outdated_headers
-- $1 the last id seen, $2 id of the current key, $3 how many at most. Primary key of endpoint.
select
  id,
  'endpoint_headers/' || id::text as context,
  headers_sealed
from endpoint
where id > $1::uuid
  and headers_sealed is not null
  and substring(headers_sealed from 2 for 8) <> $2::bytea
order by id
limit $3::integer

-- name: reseal_headers
-- $1 ids, $2 as they were, $3 as they are to be. Primary key; one that was changed meanwhile is left alone.
update endpoint
set headers_sealed = given.after
from unnest($1::uuid[], $2::bytea[], $3::bytea[]) as given (id, before, after)
where endpoint.id = given.id
  and endpoint.headers_sealed = given.before

-- name: outdated_source_secrets
-- $1 the last id seen, $2 id of the current key, $3 how many at most. Primary key.
select
  id,
  'source_secret/' || source_id as context,
  sealed
from source_secret
where id > $1::uuid
  and substring(sealed from 2 for 8) <> $2::bytea
order by id
limit $3::integer

-- name: reseal_source_secrets
-- $1 ids, $2 as they were, $3 as they are to be. Primary key; one that was changed meanwhile is left alone.
update source_secret
set sealed = given.after
from unnest($1::uuid[], $2::bytea[], $3::bytea[]) as given (id, before, after)
where source_secret.id = given.id
  and source_secret.sealed = given.before
