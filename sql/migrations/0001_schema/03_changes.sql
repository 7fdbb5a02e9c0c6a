-- Changes of the registry: how nodes learn of them, revisions for If-Match, and the audit log.

-- Every change of the registry takes the next version and keeps this row locked until it commits. So versions commit in
-- order, and "version > the last one seen" misses nothing.
create table registry_version (
  singleton boolean primary key default true check (singleton),
  version bigint not null default 0
);
insert into registry_version default values;

create table control_log (
  version bigint primary key,
  kind text not null,                          -- endpoint, tenant, key, retry, cancel, ...
  tenant_id text collate "C",
  endpoint_id uuid,
  delivery_id uuid,
  at timestamptz not null default now()
);

-- The version of the last change to the tenant, its endpoints or its subscriptions. Publish keeps fan-out plans in memory,
-- and compares this version in the statement that uses one.
create table tenant_last_change (
  tenant_id text collate "C" primary key,
  version bigint not null
) with (fillfactor = 50);

-- Call it last in a transaction that changes the registry: from here to the commit, such transactions run one at a time.
create function record_change(kind text, tenant_id text, endpoint_id uuid default null, delivery_id uuid default null)
returns bigint language sql as $$
  with next as (
    update postrider.registry_version set version = version + 1 returning version
  ),
  revised as (
    insert into postrider.tenant_last_change as r (tenant_id, version)
    select record_change.tenant_id, next.version
    from next
    where record_change.tenant_id is not null
      and record_change.delivery_id is null
    on conflict on constraint tenant_last_change_pkey do update
      set version = excluded.version
  )
  insert into postrider.control_log (version, kind, tenant_id, endpoint_id, delivery_id)
  select next.version, record_change.kind, record_change.tenant_id, record_change.endpoint_id, record_change.delivery_id
  from next
  returning version
$$;

-- Changes made by functions that other roles may call. Those roles decide when they commit, so they must not keep
-- registry_version locked until then. They only append here, and a node records the change soon after the commit.
create table requested_change (
  id bigint generated always as identity primary key,
  kind text not null,
  tenant_id text collate "C",
  endpoint_id uuid
);

-- Records changes that were requested and committed; returns how many. Locks: as record_change().
create function record_requested_changes(at_most integer) returns bigint language sql
set search_path = postrider, pg_temp as $$
  with taken as (
    delete from requested_change
    where id = any (array(select r.id
                          from requested_change r
                          order by r.id
                          limit at_most
                          for update skip locked))
    returning id, kind, tenant_id, endpoint_id
  )
  select count(record_change(t.kind, t.tenant_id, t.endpoint_id))
  from (select * from taken order by id) as t
$$;

-- Requests a change that was made with plain SQL, by the owner of the schema for example, unless its transaction has recorded
-- one of the same tenant itself, as postrider's own statements do. It runs at the commit, when that is known. A change in a
-- subtransaction may be recorded twice, which only makes the nodes read the endpoint again.
create function request_unrecorded_change() returns trigger language plpgsql
security definer set search_path = postrider, pg_temp as $$
declare
  changed jsonb := to_jsonb(case when tg_op = 'DELETE' then old else new end);
  tenant text := changed ->> case tg_table_name when 'tenant' then 'id' else 'tenant_id' end;
  endpoint uuid := changed ->> case tg_table_name when 'endpoint' then 'id' when 'subscription' then 'endpoint_id' end;
begin
  if not exists (select from tenant_last_change c
                 where c.tenant_id = tenant and c.xmin = pg_current_xact_id()::xid) then
    insert into requested_change (kind, tenant_id, endpoint_id)
    values (case when endpoint is null then 'tenant' else 'endpoint' end, tenant, endpoint);
  end if;
  return null;
end
$$;

create constraint trigger tenant_change_noticed
after update of status, max_in_flight, rate_per_second, publish_rate_per_second, payload_bytes_max, endpoints_max,
                allow_networks
on tenant deferrable initially deferred for each row execute function request_unrecorded_change();

create constraint trigger endpoint_change_noticed
after update of url, status, max_attempts, timeout_ms, give_up_seconds, max_in_flight, rate_per_second, ordering,
                retry_schedule, on_rejected, signature, headers_sealed, allow_networks
on endpoint deferrable initially deferred for each row execute function request_unrecorded_change();

create constraint trigger subscription_change_noticed
after insert or update or delete
on subscription deferrable initially deferred for each row execute function request_unrecorded_change();

-- ── revisions, for If-Match ──────────────────────────────────────────────────────────────────────────────────────────

-- `revision` counts changes of what people and programs configure, by any means. What postrider itself observes (health,
-- counts, positions) is not counted, so that a busy endpoint can be updated with If-Match.

create function increment_revision() returns trigger language plpgsql as $$
begin
  new.revision := old.revision + 1;
  return new;
end
$$;

create trigger tenant_updated
before update of name, status, status_reason, max_in_flight, rate_per_second, publish_rate_per_second,
                 payload_bytes_max, endpoints_max, allow_networks, contacts, metadata
on tenant for each row execute function increment_revision();

create trigger endpoint_updated
before update of url, description, status, status_reason, max_attempts, timeout_ms, give_up_seconds, max_in_flight,
                 rate_per_second, ordering, retry_schedule, on_rejected, signature, allow_networks, metadata
on endpoint for each row execute function increment_revision();

-- ── the audit log ────────────────────────────────────────────────────────────────────────────────────────────────────

-- One row per change, written in the same transaction. Rows are never updated; retention deletes the oldest by
-- audit_by_time. Changes are rare compared with deliveries, so one plain table with an index per filter is enough.
create table audit (
  id bigint generated always as identity primary key,
  at timestamptz not null default now(),
  actor_kind text not null check (actor_kind in ('key', 'system', 'sql', 'console', 'portal', 'command')),
  actor text collate "C" not null,             -- public ID of the key or link, 'system', a database role, user@host
  actor_name text,                             -- the label of the link; the owner of a key is in api_key
  on_behalf_of text not null default 'operator' check (on_behalf_of in ('customer', 'operator', 'postrider')),
  action text collate "C" not null,            -- such as 'endpoint.pause': the kind of object, and a verb
  tenant_id text collate "C",                  -- no reference: the log outlives the tenant
  object text collate "C" not null,            -- public ID of what was changed
  before jsonb,                                -- of an update, only the fields that differ; secrets are masked
  after jsonb,
  reason text,
  address text,
  request_id text
);
create index audit_by_time on audit (at, id);
create index audit_by_tenant on audit (tenant_id, at, id);
create index audit_by_actor on audit (actor, at, id);
create index audit_by_object on audit (object, at, id);
create index audit_by_action on audit (action, at, id);

-- For changes made in SQL. A change without effect (both documents are the same) is written too, because it was requested.
create function write_audit(actor_kind text, actor text, action text, tenant_id text, object text,
                            before jsonb default null, after jsonb default null, reason text default null,
                            address text default null, request_id text default null, on_behalf_of text default null,
                            actor_name text default null)
returns void language sql as $$
  insert into postrider.audit (actor_kind, actor, actor_name, on_behalf_of, action, tenant_id, object, before, after, reason,
                               address, request_id)
  values (write_audit.actor_kind, write_audit.actor, write_audit.actor_name,
          coalesce(write_audit.on_behalf_of,
                   case write_audit.actor_kind when 'system' then 'postrider' else 'operator' end),
          write_audit.action, write_audit.tenant_id, write_audit.object, write_audit.before, write_audit.after,
          write_audit.reason, write_audit.address, write_audit.request_id)
$$;
