-- Around the application's side of the outbox in another database.

-- name: is_postriders_own
-- not null: all
select to_regclass('postrider.migration') is not null as is_own;

-- name: outbox_here
-- A row if there is an outbox: whether this role may move its rows, and its name. Every role may read the catalogue.
-- not null: all
select has_schema_privilege(n.oid, 'usage')
         and has_table_privilege(c.oid, 'select')
         and has_table_privilege(c.oid, 'update')
         and has_table_privilege(c.oid, 'delete') as may_move,
       current_user::text as role
from pg_namespace n
join pg_class c on c.relnamespace = n.oid
where n.nspname = 'postrider'
  and c.relname = 'outbox';

-- name: missing_roles
-- Roles that are granted to people and programs and do not exist, and the statements that create each and give it its
-- rights. A database of postrider itself needs no relay role.
-- not null: all
select role.name,
       format('create role %I nologin;', role.name) as creation,
       format('select postrider.%I();', role.grants) as grants
from (values ('postrider_publisher', 'grant_outbox', 1),
             ('postrider_relay', 'grant_outbox', 2),
             ('postrider_consumer', 'grant_consumer', 3),
             ('postrider_support', 'grant_support', 4),
             ('postrider_support_payloads', 'grant_support', 5)) as role (name, grants, place)
where to_regprocedure('postrider.' || role.grants || '()') is not null
  and not exists (select from pg_roles where rolname = role.name)
  and (role.name <> 'postrider_relay' or to_regclass('postrider.migration') is null)
order by role.place;

-- name: create_schema
create schema if not exists postrider;

-- name: create_relay_role
-- If this role may create roles; otherwise an administrator does, and then calls grant_outbox().
do $$
begin
  create role postrider_relay nologin;
exception when duplicate_object or unique_violation or insufficient_privilege then
  null;
end
$$;
