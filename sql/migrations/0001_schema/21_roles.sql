-- Roles, and the functions that they may call.

-- Creates the role of consumers and grants it the inbox functions. If postrider is not allowed to create roles, an
-- administrator creates it and calls this again.
create function grant_consumer() returns void language plpgsql as $$
begin
  if not exists (select from pg_roles where rolname = 'postrider_consumer') then
    begin
      create role postrider_consumer nologin;
    exception
      when insufficient_privilege then
        raise notice 'the role postrider_consumer does not exist, and this role is not allowed to create it';
        return;
      when duplicate_object or unique_violation then
        null;  -- created at the same time in another database of the server
    end;
  end if;
  grant usage on schema postrider to postrider_consumer;
  grant execute on function postrider.inbox_claim, postrider.inbox_ack, postrider.inbox_extend, postrider.inbox_nack
    to postrider_consumer;
end
$$;
-- For people who help customers: views, lookups, pause, resume and replay. No tables, so no secrets. To
-- postrider_support_payloads, which has the same rights, the views also show what endpoints responded. An administrator calls
-- it again after creating the roles, if postrider is not allowed to. Each role works without the other.
create function grant_support() returns void language plpgsql as $$
declare
  role text;
  name text;
begin
  foreach role in array array['postrider_support', 'postrider_support_payloads'] loop
    if not exists (select from pg_roles where rolname = role) then
      begin
        execute format('create role %I nologin', role);
      exception
        when insufficient_privilege then
          raise notice 'the role % does not exist, and this role is not allowed to create it', role;
          continue;
        when duplicate_object or unique_violation then
          null;
      end;
    end if;
    execute format('grant usage on schema postrider to %I', role);
    for name in select c.relname from pg_class c
                where c.relnamespace = 'postrider'::regnamespace and c.relkind = 'v' and c.relname like 'webhook\_%' loop
      -- The views are read-only. With these rights, an update fails with a hint instead of "permission denied".
      execute format('grant select, update, delete on postrider.%I to %I', name, role);
    end loop;
    for name in select p.oid::regprocedure::text from pg_proc p
                where p.pronamespace = 'postrider'::regnamespace
                  and p.proname in ('pause_endpoint', 'resume_endpoint', 'endpoints_for', 'replay_delivery', 'event_id',
                                    'endpoint_id', 'delivery_id', 'delivery', 'event', 'endpoint', 'deliveries_of', 'give_up_at', 'public_id_of', 'parse_public_id') loop
      execute format('grant execute on function %s to %I', name, role);
    end loop;
  end loop;
end
$$;

-- Postgres lets every role call a new function, unless that is revoked.
revoke execute on all functions in schema postrider from public;
select grant_consumer();
select grant_support();
