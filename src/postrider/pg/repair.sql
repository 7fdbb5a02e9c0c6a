-- name: missing_tables
-- $1 names
select n.name
from unnest($1::text[]) as n (name)
where to_regclass('postrider.' || quote_ident(n.name)) is null
order by n.name;
