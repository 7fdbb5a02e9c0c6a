-- Settings fixed for the life of the schema, and the master key's check value.

-- name: read_setting
-- Primary key.
-- not null: all
select value
from setting
where name = :name::text

-- name: insert_setting
-- The first one wins.
insert into setting (name, value)
values (:name::text, :value::text)
on conflict (name) do nothing

-- name: replace_setting
-- Primary key.
update setting
set value = :value::text
where name = :name::text
  and value = :old_value::text
