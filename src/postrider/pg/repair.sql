-- name: missing_tables
-- not null: all
select n.name
from unnest(:names::text[]) as n (name)
where to_regclass('postrider.' || quote_ident(n.name)) is null
order by n.name;
