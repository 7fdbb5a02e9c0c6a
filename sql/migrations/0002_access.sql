-- Keys, audit, access.

-- ── who did what ───────────────────────────────────────────────────────────────────────────────────────────────

-- One row per change, written in the transaction that makes it. Never updated; retention deletes the oldest by
-- audit_by_time. Changes are rare next to deliveries, so one plain table with an index per filter is enough.
create table audit (
  id bigint generated always as identity primary key,
  at timestamptz not null default now(),
  actor_kind text not null check (actor_kind in ('key', 'system', 'sql', 'console', 'portal', 'command')),
  actor text collate "C" not null,             -- the key's public ID, 'system', a database role, a user, a session, user@host
  on_behalf_of text not null default 'operator' check (on_behalf_of in ('customer', 'operator', 'postrider')),
  action text collate "C" not null,            -- 'endpoint.pause': what kind of object, and the verb
  tenant_id text collate "C",                  -- no reference: the log outlives what it is about
  object text collate "C" not null,            -- public ID of what was changed
  before jsonb,                                -- of a change only the fields that differ; secrets masked
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

-- For changes that are made in SQL. An empty change (both documents the same) is written, too: somebody asked for it.
create function write_audit(actor_kind text, actor text, action text, tenant_id text, object text,
                            before jsonb default null, after jsonb default null, reason text default null,
                            address text default null, request_id text default null, on_behalf_of text default null)
returns void language sql as $$
  insert into postrider.audit (actor_kind, actor, on_behalf_of, action, tenant_id, object, before, after, reason, address, request_id)
  values (write_audit.actor_kind, write_audit.actor,
          coalesce(write_audit.on_behalf_of,
                   case write_audit.actor_kind when 'system' then 'postrider' else 'operator' end), write_audit.action, write_audit.tenant_id, write_audit.object,
          write_audit.before, write_audit.after, write_audit.reason, write_audit.address, write_audit.request_id)
$$;

-- ── revisions, for If-Match ────────────────────────────────────────────────────────────────────────────────────

-- The column `revision` (0003) counts changes of what people and programs chose, whoever makes them. What postrider
-- itself observes (health, counts, positions) is not counted, so that a busy endpoint can be changed with If-Match.

create function count_revision() returns trigger language plpgsql as $$
begin
  new.revision := old.revision + 1;
  return new;
end
$$;

create trigger tenant_revision
before update of name, status, status_reason, max_in_flight, rate_per_second, publish_rate_per_second,
                 payload_bytes_max, endpoints_max, contacts, metadata
on tenant for each row execute function count_revision();

create trigger endpoint_revision
before update of url, description, status, status_reason, max_attempts, timeout_ms, give_up_seconds, max_in_flight,
                 rate_per_second, ordering, retry_schedule, on_rejected, signature, metadata
on endpoint for each row execute function count_revision();

-- ── keys ───────────────────────────────────────────────────────────────────────────────────────────────────────

alter table api_key add rate_per_second double precision;   -- requests of this key per node; null: no limit
alter table api_key add created_by text;                    -- public ID of the key that made it; null: postrider
create index api_key_by_tenant on api_key (tenant_id, id);
