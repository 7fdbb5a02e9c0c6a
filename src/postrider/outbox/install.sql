-- Around the application's side of the outbox in another database.

-- name: is_postriders_own
select to_regclass('postrider.migration') is not null;

-- name: has_outbox
select to_regclass('postrider.outbox') is not null;

-- name: create_schema
create schema if not exists postrider;

-- name: make_relay_role
-- Where this role may make roles; otherwise a person does, and then calls grant_outbox().
do $$
begin
  create role postrider_relay nologin;
exception when duplicate_object or unique_violation or insufficient_privilege then
  null;
end
$$;
