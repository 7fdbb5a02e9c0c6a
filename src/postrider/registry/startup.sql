-- Settings fixed for the life of the schema, and the master key's check value.

-- name: read_setting
-- $1 name. Primary key.
select value
from setting
where name = $1::text

-- name: insert_setting
-- $1 name, $2 value. The first one wins.
insert into setting (name, value)
values ($1::text, $2::text)
on conflict (name) do nothing

-- name: replace_setting
-- $1 name, $2 the value to replace, $3 value. Primary key.
update setting
set value = $3::text
where name = $1::text
  and value = $2::text
