-- Replays, endpoint health and who is told of it, retention and erasure.

-- ── ids made by SQL ────────────────────────────────────────────────────────────────────────────────────────────

-- Where a node's ids have its slot (up to 8191), these have one that no node ever gets: bffe for deliveries of replays
-- and for the replays themselves, bfff for operational events. The outbox counts through the slots from 8192 on; to begin
-- like one of these, one of its ids would have to be made in the same millisecond with the same 25 bits.
create sequence id_sequence as integer minvalue 0 maxvalue 4095 cycle;

-- A time-ordered id by the database's clock: 48 bits of milliseconds, 12 of sequence, the slot, 48 random.
create function make_id(slot text default 'bffe') returns uuid language sql volatile as $$
  select (lpad(to_hex(floor(extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0')
          || '7' || lpad(to_hex(nextval('postrider.id_sequence')), 3, '0')
          || slot
          || left(replace(gen_random_uuid()::text, '-', ''), 12))::uuid
$$;

-- Every subscription pattern that matches the type: itself, each prefix ending in .*, and *.
create function type_patterns(type text) returns text[] language sql immutable strict parallel safe as $$
  select array_agg(pattern)
  from (
    select type as pattern
    union all
    select '*'
    union all
    select array_to_string(part[1:depth], '.') || '.*'
    from string_to_array(type, '.') as part,
         generate_series(1, cardinality(part) - 1) as depth
  ) as patterns
$$;

-- ── replays ────────────────────────────────────────────────────────────────────────────────────────────────────

create table replay (
  id uuid primary key,
  tenant_id text collate "C" not null references tenant (id),
  kind text not null check (kind in ('delivery', 'range')),
  status text not null check (status in ('queued', 'running', 'completed', 'canceled')),
  reason text not null,
  requested_by text not null,                  -- 'key_…', or 'sql:' and the role
  on_behalf_of text not null default 'operator' check (on_behalf_of in ('customer', 'operator', 'postrider')),
  delivery_id uuid,                            -- kind delivery: the one that is sent again
  scope text check (scope in ('failed', 'missing', 'all')),   -- kind range, as all that follows
  endpoint_id uuid,                            -- null: all
  event_types text[],                          -- patterns; null: all
  causes text[],                               -- of dead letters; null: all
  delivery_ids uuid[],                         -- only these dead letters; null: all
  since timestamptz,
  until timestamptz,
  rate_per_second double precision,
  is_counted boolean not null default false,   -- first it is counted what matches, then it is queued
  matched bigint not null default 0,
  queued bigint not null default 0,
  after_id uuid,                               -- how far the present pass is: dead letters by delivery id,
  after_endpoint uuid,                         -- events by their id and then the endpoint
  runner uuid,                                 -- the node that works on it
  lease_until timestamptz,                     -- by the database's clock; then others may take it
  created_at timestamptz not null default now(),
  started_at timestamptz,
  finished_at timestamptz
) with (fillfactor = 50);
create index replay_by_tenant on replay (tenant_id, id);
create index replay_unfinished on replay (tenant_id, id) where status in ('queued', 'running');
create unique index replay_running on replay (tenant_id) where status = 'running';
create index replay_by_requester on replay (requested_by, created_at) where kind = 'delivery';

-- Requesters whose single replays are counted: each locks its own row for that. Postrider's own role does it only.
create table replay_turn (
  requested_by text collate "C" primary key,
  taken_at timestamptz not null default now()
) with (fillfactor = 50);

-- Which delivery was made by which replay, and from which; so a replayed delivery is found by its event, and what is
-- missing is replayed once. Goes with its event.
create table replayed (
  event_id uuid not null,
  endpoint_id uuid not null,
  delivery_id uuid not null,
  origin_id uuid,                              -- null: the event had no delivery for the endpoint
  replay_id uuid not null,
  primary key (event_id, endpoint_id, delivery_id)
);
create index replayed_by_replay on replayed (replay_id, delivery_id);

-- How the deliveries of a replay ended, counted as they are settled. A bucket is served by one shard, so two
-- settles do not wait for each other here.
create table replay_progress (
  replay_id uuid not null,
  bucket integer not null,
  delivered bigint not null default 0,
  failed bigint not null default 0,
  canceled bigint not null default 0,
  primary key (replay_id, bucket)
) with (fillfactor = 50);

-- How far a `postrider outbox refanout` is. One row per range and place that it reads from; the run that is asked for the
-- same again goes on behind it.
create table refanout (
  since timestamptz not null,
  until timestamptz not null,
  tenant_id text collate "C" not null default '',   -- '': all
  place text not null,                              -- events, outbox:<id>, archive:<file>
  after_id uuid,                                    -- events: the last one that was looked at,
  after_endpoint uuid,                              -- and which of its endpoints
  after_time timestamptz,                           -- an outbox: processed_at and number of the last row
  after_row bigint not null default 0,              -- an archive: lines
  looked_at bigint not null default 0,
  queued bigint not null default 0,                 -- of an outbox: rows handed to the relay again
  started_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  finished_at timestamptz,
  primary key (since, until, tenant_id, place)
) with (fillfactor = 50);

-- When the payload was erased; its body is then empty, and nothing of it is sent any more.
alter table event add column erased_at timestamptz;

-- Makes a new delivery of the same event from an old one; the one place where this is done, for the API and for SQL.
--   wanted_tenant null: any tenant (SQL); per_second_max null: no limit; new_replay and new_delivery: the ids, if they
--   were given out before
-- Returns one row. outcome: made, unknown_delivery, endpoint_inactive, event_gone, event_erased, too_fast.
-- Locks: the event against erasure; the position of a strict endpoint, until commit.
create function make_replay(wanted_tenant text, wanted uuid, why text, who text, due timestamptz,
                            per_second_max integer default null, new_replay uuid default null,
                            new_delivery uuid default null, on_behalf_of text default 'operator')
returns table (outcome text, replay_id uuid, delivery_id uuid, tenant_id text)
language plpgsql set search_path = postrider, pg_temp as $$
#variable_conflict use_column
declare
  old record;
  target record;
  gone record;
  place bigint := 0;
begin
  select d.event_id, d.endpoint_id, d.tenant_id
  into old
  from (
    select q.event_id, q.endpoint_id, q.tenant_id
    from bucket_lease l
    join queue q on q.bucket = l.bucket and q.id = wanted
    union all
    select a.event_id, a.endpoint_id, a.tenant_id
    from attempt a
    where a.delivery_id = wanted
    union all
    select d.event_id, d.endpoint_id, d.tenant_id
    from dead_letter d
    where d.delivery_id = wanted
  ) as d
  limit 1;
  if not found or old.tenant_id <> wanted_tenant then
    return query select 'unknown_delivery', null::uuid, null::uuid, null::text;
    return;
  end if;

  if per_second_max is not null then
    -- One at a time per requester, so that they are counted.
    insert into replay_turn (requested_by) values (who) on conflict (requested_by) do update set taken_at = now();
    if (select count(*)
        from replay r
        where r.kind = 'delivery'
          and r.requested_by = who
          and r.created_at > clock_timestamp() - interval '1 second') >= per_second_max then
      return query select 'too_fast', null::uuid, null::uuid, null::text;
      return;
    end if;
  end if;

  select e.bucket, e.status, e.ordering into target from endpoint e where e.id = old.endpoint_id;
  if not found or target.status not in ('active', 'paused') then
    return query select 'endpoint_inactive', null::uuid, null::uuid, null::text;
    return;
  end if;
  select e.erased_at into gone from event e where e.id = old.event_id for share;
  if not found then
    return query select 'event_gone', null::uuid, null::uuid, null::text;
    return;
  end if;
  -- Past its time an event is kept only while something needs it, so only what keeps it can be sent again. The lock
  -- stops others from resolving the dead letter first.
  if old.event_id < (select k.below from kept_since k where k.name = 'events') then
    perform
    from dead_letter d
    where d.delivery_id = wanted
      and d.bucket = target.bucket
      and d.resolved_at is null
    for no key update;
    if not found then
      return query select 'event_gone', null::uuid, null::uuid, null::text;
      return;
    end if;
  end if;
  if gone.erased_at is not null then
    return query select 'event_erased', null::uuid, null::uuid, null::text;
    return;
  end if;

  replay_id := coalesce(new_replay, make_id());
  delivery_id := coalesce(new_delivery, make_id());
  outcome := 'made';
  tenant_id := old.tenant_id;
  insert into replay (id, tenant_id, kind, status, reason, requested_by, on_behalf_of, delivery_id, is_counted, matched,
                      queued, created_at, started_at, finished_at)
  values (make_replay.replay_id, old.tenant_id, 'delivery', 'completed', why, who, make_replay.on_behalf_of, wanted, true,
          1, 1, clock_timestamp(), now(), now());
  insert into replayed (event_id, endpoint_id, delivery_id, origin_id, replay_id)
  values (old.event_id, old.endpoint_id, make_replay.delivery_id, wanted, make_replay.replay_id);
  update dead_letter d
  set resolved_at = now(),
      resolution = 'replayed'
  where d.delivery_id = wanted
    and d.bucket = target.bucket
    and d.resolved_at is null;
  if target.ordering = 'strict' then
    insert into endpoint_position as p (endpoint_id, position)
    values (old.endpoint_id, 1)
    on conflict (endpoint_id) do update
      set position = p.position + 1
    returning p.position into place;
  end if;
  -- The time to give up counts from when it may be sent.
  insert into queue (bucket, id, event_id, endpoint_id, tenant_id, position, due_at, created_at, replay_id)
  values (target.bucket, make_replay.delivery_id, old.event_id, old.endpoint_id, old.tenant_id, place,
          greatest(due, now()), greatest(due, now()), make_replay.replay_id);
  -- Nobody hands it over in memory: its owner fetches it.
  insert into publish_log (node_id, first_id, last_id, buckets)
  values ('00000000-0000-0000-0000-000000000000', make_replay.delivery_id, make_replay.delivery_id,
          array[target.bucket]);
  return next;
end
$$;

-- Replays that other roles asked for in SQL. Those roles decide when they commit, so they must not hold the locks of
-- make_replay() until then (the position of a strict endpoint would hold up publishing): they only append here, and a
-- node makes the replay soon after the commit.
create table requested_replay (
  id bigint generated always as identity primary key,
  origin_id uuid not null,                     -- the delivery that is sent again
  reason text not null,
  requested_by text not null,
  due_at timestamptz not null,
  replay_id uuid not null,                     -- the ids that were given out
  delivery_id uuid not null
);

-- Makes the oldest that was requested and committed. False: there is none. What cannot be made any more is in the audit log.
create function make_requested_replay() returns boolean language plpgsql set search_path = postrider, pg_temp as $$
declare
  wanted requested_replay;
  made record;
begin
  delete from requested_replay
  where id = (select r.id from requested_replay r order by r.id limit 1 for update skip locked)
  returning * into wanted;
  if not found then
    return false;
  end if;
  select m.outcome, m.tenant_id
  into made
  from make_replay(null, wanted.origin_id, wanted.reason, wanted.requested_by, wanted.due_at, null, wanted.replay_id,
                   wanted.delivery_id) as m;
  if made.outcome <> 'made' then
    perform write_audit('system', 'system', 'delivery.replay_dropped', made.tenant_id,
                        public_id_of('dlv', wanted.origin_id),
                        after => jsonb_build_object('delivery_id', public_id_of('dlv', wanted.delivery_id),
                                                    'replay_id', public_id_of('rpl', wanted.replay_id)),
                        reason => made.outcome);
  end if;
  return true;
end
$$;

-- For SQL users: sends a delivery again, as a new delivery of the same event. Returns its id. It is tried here and undone,
-- with its locks, so that the caller learns what is wrong; a node does it once the caller has committed.
create function replay_delivery(delivery text, reason text, not_before timestamptz default now())
returns text language plpgsql security definer set search_path = postrider, pg_temp as $$
declare
  made record;
begin
  if delivery !~ '^dlv_[0-9a-f]{32}$' then
    raise exception '"%" is not the id of a delivery', delivery
      using errcode = 'invalid_parameter_value', hint = 'It begins with dlv_ and has 32 hex digits behind that.';
  end if;
  if coalesce(btrim(reason), '') = '' or octet_length(reason) > 1000 then
    raise exception 'a replay needs a reason of up to 1,000 bytes' using errcode = 'invalid_parameter_value';
  end if;
  if not_before > now() + interval '30 days' then
    raise exception 'not_before may be at most 30 days from now' using errcode = 'invalid_parameter_value';
  end if;
  begin
    select m.outcome, m.replay_id, m.delivery_id, m.tenant_id
    into made
    from make_replay(null, substr(delivery, 5)::uuid, reason, 'sql:' || session_user, coalesce(not_before, now())) as m;
    raise exception using errcode = 'PRL02', message = 'tried';
  exception when sqlstate 'PRL02' then
    null;
  end;
  case made.outcome
    when 'made' then
      insert into requested_replay (origin_id, reason, requested_by, due_at, replay_id, delivery_id)
      values (substr(delivery, 5)::uuid, reason, 'sql:' || session_user, coalesce(not_before, now()), made.replay_id,
              made.delivery_id);
      perform write_audit('sql', session_user, 'delivery.replay', made.tenant_id, delivery,
                          after => jsonb_build_object('delivery_id', public_id_of('dlv', made.delivery_id),
                                                      'replay_id', public_id_of('rpl', made.replay_id)),
                          reason => reason);
      return 'dlv_' || replace(made.delivery_id::text, '-', '');
    when 'unknown_delivery' then
      raise exception 'there is no delivery %', delivery using errcode = 'no_data_found';
    when 'endpoint_inactive' then
      raise exception 'the endpoint of delivery % is disabled or deleted', delivery
        using errcode = 'object_not_in_prerequisite_state', hint = 'Resume the endpoint first.';
    when 'event_erased' then
      raise exception 'the payload of the event of delivery % was erased', delivery
        using errcode = 'object_not_in_prerequisite_state';
    else
      raise exception 'the event of delivery % is past its retention', delivery
        using errcode = 'object_not_in_prerequisite_state';
  end case;
end
$$;
revoke all on function replay_delivery(text, text, timestamptz) from public;

-- ── operational events ─────────────────────────────────────────────────────────────────────────────────────────

-- The reserved tenant: its events tell operators what happens to other tenants' endpoints. Any endpoint of it can
-- subscribe; nobody but postrider publishes to it, and nothing is told about it.
insert into tenant (id, name, status_by) values ('postrider', 'postrider itself', 'postrider');

-- Publishes to the reserved tenant, in the caller's transaction: event, queue rows, line in the publish log. Returns the
-- event's id as everybody knows it.
create function operational_event(kind text, data json) returns text
language plpgsql set search_path = postrider, pg_temp as $$
declare
  made uuid := make_id('bfff');
  shown text := 'evt_' || replace(made::text, '-', '');
begin
  insert into event (id, tenant_id, type, body)
  values (made, 'postrider', kind,
          format('{"id":"%s","type":"%s","tenant_id":"postrider","created_at":"%s","data":%s}', shown, kind,
                 to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), data));
  with target as materialized (
    select distinct on (e.id) e.id as endpoint_id, e.bucket, e.ordering = 'strict' as is_strict,
           (left(replace(made::text, '-', ''), 20) || e.delivery_tail)::uuid as id
    from subscription s
    join endpoint e on e.id = s.endpoint_id
    where s.tenant_id = 'postrider'
      and s.pattern = any (type_patterns(kind))
      and s.enabled
      and s.versions is null
      and e.status in ('active', 'paused')
    order by e.id
  ),
  counter as (
    insert into endpoint_position as p (endpoint_id, position)
    select t.endpoint_id, 1
    from target t
    where t.is_strict
    order by t.endpoint_id
    on conflict (endpoint_id) do update
      set position = p.position + 1
    returning p.endpoint_id, p.position
  ),
  queued as (
    insert into queue (bucket, id, event_id, endpoint_id, tenant_id, position, due_at, created_at)
    select t.bucket, t.id, made, t.endpoint_id, 'postrider', coalesce(c.position, 0), now(), now()
    from target t
    left join counter c on c.endpoint_id = t.endpoint_id
    order by t.bucket, t.id
    returning bucket, id
  )
  insert into publish_log (node_id, first_id, last_id, buckets)
  select '00000000-0000-0000-0000-000000000000',
         (left(replace(made::text, '-', ''), 20) || repeat('0', 12))::uuid,
         (left(replace(made::text, '-', ''), 20) || repeat('f', 12))::uuid,
         array_agg(distinct q.bucket)
  from queued q
  having count(*) > 0;
  return shown;
end
$$;

-- ── endpoint health ────────────────────────────────────────────────────────────────────────────────────────────

alter table endpoint
  add column failures integer not null default 0,   -- exchanges that failed since failing_since, counted up to 10
  add column reported integer not null default 0,   -- what operators were told: 0 nothing, 1 failing, 50, 70, 90 percent
                                                    -- of the time to its end, 100 disabled
  add column told integer not null default 0,       -- the same of the customer's contacts
  add column told_at timestamptz;                   -- at most one notice an hour
create index endpoint_to_report on endpoint (id)
  where (status = 'active' and (failing_since is not null or reported > 0)) or (status = 'disabled' and reported < 100);

-- Dead letters by endpoint and minute, until they are told; written with the dead letters themselves.
create table dead_letter_minute (
  endpoint_id uuid not null,
  minute timestamptz not null,
  cause text not null,
  letters bigint not null,
  primary key (endpoint_id, minute, cause)
) with (fillfactor = 70);
create index dead_letter_minute_by_time on dead_letter_minute (minute);

-- ── contacts and notices ───────────────────────────────────────────────────────────────────────────────────────

-- An e-mail address as a key: mail servers do not tell upper case from lower case.
create function contact_key(address text) returns text language sql immutable strict parallel safe as $$
  select lower(address collate "C")
$$;

-- Notices to URLs need no confirmation: they go through the guard and are signed.
create function is_url_contact(contact text) returns boolean language sql immutable strict parallel safe as $$
  select position('://' in contact) > 0
$$;

-- The state of e-mail addresses that are or were on a tenant's list of contacts. A row outlives its place on the list, so
-- removing an address and adding it again changes nothing. Without a row the address has not confirmed.
create table contact (
  tenant_id text collate "C" not null references tenant (id),
  address text collate "C" not null,           -- contact_key()
  confirmed_at timestamptz,
  unsubscribed_at timestamptz,                 -- cleared only when the address confirms again itself
  primary key (tenant_id, address)
);

-- Confirmation mails to send; only for addresses on the tenant's list.
create table contact_request (
  tenant_id text collate "C" not null references tenant (id),
  address text collate "C" not null,           -- contact_key()
  due_at timestamptz not null default now(),
  tries integer not null default 0,
  created_at timestamptz not null default now(),
  primary key (tenant_id, address)
);
create index contact_request_by_due on contact_request (due_at);

-- Links in mails: the mail has the token, this table its SHA-256.
create table contact_token (
  hash bytea primary key,
  purpose text not null check (purpose in ('confirm', 'unsubscribe')),
  tenant_id text collate "C" not null references tenant (id),
  address text collate "C" not null,           -- contact_key()
  expires_at timestamptz not null
);
create index contact_token_by_contact on contact_token (tenant_id, address);
create index contact_token_by_expiry on contact_token (expires_at);

-- Messages per UTC day, for the caps. scope confirmations: by tenant; confirmations_to: by mailbox, over all tenants;
-- notices: by tenant.
create table mail_budget (
  scope text not null check (scope in ('confirmations', 'confirmations_to', 'notices')),
  key text collate "C" not null,
  day date not null,
  used integer not null,
  primary key (scope, key, day)
);

-- Takes `wanted` messages from today's budget; false if fewer are left. Locks the row of the budget.
create function take_mail_budget(scope text, key text, wanted integer, at_most integer) returns boolean
language plpgsql set search_path = postrider, pg_temp as $$
declare
  today date := (now() at time zone 'UTC')::date;
begin
  insert into mail_budget values (scope, key, today, 0) on conflict do nothing;
  update mail_budget b
  set used = b.used + wanted
  where b.scope = take_mail_budget.scope
    and b.key = take_mail_budget.key
    and b.day = today
    and b.used + wanted <= at_most;
  return found;
end
$$;

-- When a message that is over its cap may be sent: the next UTC day.
create function next_mail_day() returns timestamptz language sql stable as $$
  select ((now() at time zone 'UTC')::date + 1)::timestamp at time zone 'UTC'
$$;

-- The contacts that receive notices, in the order of the list; null if there are none.
create function contacts_to_tell(tenant text) returns text[] language sql stable
set search_path = postrider, pg_temp as $$
  select array_agg(l.contact order by l.place)
  from tenant t
  cross join jsonb_array_elements_text(t.contacts) with ordinality as l (contact, place)
  left join contact c on c.tenant_id = t.id and c.address = contact_key(l.contact)
  where t.id = contacts_to_tell.tenant
    and t.status <> 'deleted'
    and (is_url_contact(l.contact) or (c.confirmed_at is not null and c.unsubscribed_at is null))
$$;

-- Acts on the addresses that a change of the list adds, in the transaction that changes it. An operator's are confirmed
-- at once; the others, and those that unsubscribed, are asked to confirm. Requests for addresses that left the list go.
create function contacts_added(tenant text, added text[], is_operator boolean) returns void language plpgsql
set search_path = postrider, pg_temp as $$
begin
  delete from contact_request r
  where r.tenant_id = tenant
    and not exists (select
                    from tenant t
                    cross join jsonb_array_elements_text(t.contacts) as l (contact)
                    where t.id = contacts_added.tenant and contact_key(l.contact) = r.address);
  if is_operator then
    insert into contact (tenant_id, address, confirmed_at)
    select tenant, contact_key(a), now()
    from unnest(added) as a
    where not is_url_contact(a)
    on conflict (tenant_id, address) do update
      set confirmed_at = coalesce(contact.confirmed_at, excluded.confirmed_at)
      where contact.unsubscribed_at is null;
  end if;
  insert into contact_request (tenant_id, address)
  select tenant, contact_key(a)
  from unnest(added) as a
  left join contact c on c.tenant_id = tenant and c.address = contact_key(a)
  where not is_url_contact(a)
    and (c.confirmed_at is null or c.unsubscribed_at is not null)
  on conflict do nothing;
end
$$;

-- Takes the confirmation mail that waits longest, for ten minutes. No row: none is due. outcome: send, capped (it waits for
-- the next day), dropped (the address left the list or confirmed meanwhile). A mailbox gets at most per_address a day and
-- three times that in 30 days, over all tenants and tags (user+tag@…). Locks the request; one that is taken is skipped.
create function take_confirmation(per_tenant integer, per_address integer)
returns table (outcome text, tenant_id text, address text, recipient text, tries integer) language plpgsql
set search_path = postrider, pg_temp as $$
#variable_conflict use_column
declare
  taken contact_request;
  mailbox text;
  is_allowed boolean;
begin
  select * into taken
  from contact_request r
  where r.due_at <= now()
  order by r.due_at
  limit 1
  for update skip locked;
  if not found then
    return;
  end if;
  tenant_id := taken.tenant_id;
  address := taken.address;
  tries := taken.tries + 1;
  select l.contact into recipient
  from tenant t
  cross join jsonb_array_elements_text(t.contacts) as l (contact)
  left join contact c on c.tenant_id = t.id and c.address = taken.address
  where t.id = taken.tenant_id
    and t.status <> 'deleted'
    and contact_key(l.contact) = taken.address
    and (c.confirmed_at is null or c.unsubscribed_at is not null);
  if recipient is null then
    outcome := 'dropped';
    delete from contact_request r where r.tenant_id = taken.tenant_id and r.address = taken.address;
    return next;
    return;
  end if;
  mailbox := regexp_replace(taken.address, '\+[^@]*@', '@');
  -- The tenant's own budget first: one that used it up takes nothing from the mailbox's, which others need, too.
  is_allowed := taken.tries > 0;
  if not is_allowed and take_mail_budget('confirmations', taken.tenant_id, 1, per_tenant) then
    is_allowed := (select coalesce(sum(b.used), 0)
                   from mail_budget b
                   where b.scope = 'confirmations_to'
                     and b.key = mailbox
                     and b.day > (now() at time zone 'UTC')::date - 30) < 3 * per_address;
    if is_allowed then
      is_allowed := take_mail_budget('confirmations_to', mailbox, 1, per_address);
    end if;
  end if;
  if is_allowed then
    outcome := 'send';
    update contact_request r
    set due_at = now() + interval '10 minutes', tries = taken.tries + 1
    where r.tenant_id = taken.tenant_id and r.address = taken.address;
  else
    outcome := 'capped';
    update contact_request r
    set due_at = next_mail_day()
    where r.tenant_id = taken.tenant_id and r.address = taken.address;
  end if;
  return next;
end
$$;

-- What a tenant's contacts are to be told; one row per endpoint: newer news replace what was not sent yet.
create table notice (
  endpoint_id uuid primary key references endpoint (id),
  tenant_id text collate "C" not null,
  kind text not null check (kind in ('warning', 'disabled', 'recovered')),
  stage integer not null,
  failing_since timestamptz,
  cause text check (cause in ('failing', 'gone', 'operator')),   -- of kind disabled
  contacts text[] not null,                    -- those not yet told
  due_at timestamptz not null,
  tries integer not null default 0,
  created_at timestamptz not null default now()
);
create index notice_by_due on notice (due_at);

-- Takes the notice that waits longest, for an hour, and marks the endpoint as told before anything is sent, so no crash and
-- no second node can make it two within the hour. Skips the tenants in `busy`. No row: none is due. outcome: send, capped (it
-- waits for the next day), dropped (no contact is left to tell, or the endpoint was deleted). Locks the notice and its
-- endpoint; if another transaction has locked either of them, the notice is left for a later call.
create function take_notice(busy text[], per_day integer)
returns table (outcome text, endpoint_id uuid, tenant_id text, endpoint text, url text, kind text, stage integer,
               failing_since timestamptz, cause text, contacts text[], tries integer) language plpgsql
set search_path = postrider, pg_temp as $$
#variable_conflict use_column
declare
  taken notice;
  target record;
begin
  select n.* into taken
  from notice n
  join endpoint e on e.id = n.endpoint_id
  where n.due_at <= now()
    and n.tenant_id <> all (busy)
  order by n.due_at
  limit 1
  for update of n skip locked
  for no key update of e skip locked;
  if not found then
    return;
  end if;
  endpoint_id := taken.endpoint_id;
  tenant_id := taken.tenant_id;
  kind := taken.kind;
  stage := taken.stage;
  failing_since := taken.failing_since;
  cause := taken.cause;
  tries := taken.tries + 1;
  select e.public_id, e.url, e.status into target from endpoint e where e.id = taken.endpoint_id;
  endpoint := target.public_id;
  url := target.url;
  select array_agg(c order by place) into contacts
  from unnest(taken.contacts) with ordinality as t (c, place)
  where c = any (contacts_to_tell(taken.tenant_id));
  if contacts is null or target.status = 'deleted' then
    outcome := 'dropped';
    delete from notice n where n.endpoint_id = taken.endpoint_id;
  elsif taken.tries = 0 and not take_mail_budget('notices', taken.tenant_id, cardinality(contacts), per_day) then
    outcome := 'capped';
    update notice n set due_at = next_mail_day() where n.endpoint_id = taken.endpoint_id;
  else
    outcome := 'send';
    update notice n
    set due_at = now() + interval '1 hour', tries = taken.tries + 1
    where n.endpoint_id = taken.endpoint_id;
    update endpoint e set told = taken.stage, told_at = now() where e.id = taken.endpoint_id;
  end if;
  return next;
end
$$;

-- Signs notices to URLs; one per tenant, shown when it is made.
create table contact_secret (
  tenant_id text collate "C" primary key references tenant (id),
  sealed bytea not null,
  created_at timestamptz not null default now()
);

-- ── reports of endpoint health ─────────────────────────────────────────────────────────────────────────────────

-- Which endpoints are to be reported now, and as what: 0 recovered, 1 failing, 50, 70, 90, 100 disabled. A stage is
-- never left out, so nobody is disabled unwarned. span: how long nothing but failure may last; time paused does not count.
create function endpoints_to_report(span interval, at_most integer)
returns table (endpoint_id uuid, was integer, stage integer) language sql stable as $$
  select e.id, e.reported, next.stage
  from postrider.endpoint e
  join postrider.tenant t on t.id = e.tenant_id
  cross join lateral (
    select coalesce(sum(least(coalesce(p.until, now()), now()) - greatest(p.since, e.failing_since)), '0')::interval as time
    from postrider.pause_span p
    where p.tenant_id = e.tenant_id
      and (p.endpoint_id = e.id or p.endpoint_id is null)
      and coalesce(p.until, now()) > e.failing_since
  ) as paused
  cross join lateral (
    select 100 * extract(epoch from now() - e.failing_since - paused.time) / extract(epoch from span) as percent
  ) as age
  cross join lateral (
    select case
             when e.status = 'disabled' then 100
             when e.failing_since is null then 0
             when t.status <> 'active' then null
             when e.reported = 0 then case when age.percent >= 0.02 then 1 end   -- not every hiccup: a minute and a half
             when e.failures < 10 then null
             when e.reported < 50 then case when age.percent >= 50 then 50 end
             when e.reported < 70 then case when age.percent >= 70 then 70 end
             when e.reported < 90 then case when age.percent >= 90 then 90 end
             when e.reported < 100 then case when age.percent >= 100 then 100 end
           end as stage
  ) as next
  where ((e.status = 'active' and (e.failing_since is not null or e.reported > 0))
         or (e.status = 'disabled' and e.reported < 100))
    and e.tenant_id <> 'postrider'
    and next.stage is not null
  order by e.id
  limit at_most
$$;

-- Tells operators, by an operational event, and the tenant's contacts, by a notice; disables at 100. Zero effect if
-- somebody else was first. Returns the event's type, or null.
create function report_endpoint(which uuid, was integer, stage integer, span interval) returns text
language plpgsql set search_path = postrider, pg_temp as $$
declare
  e endpoint;
  contacts text[];
  kind text := case stage when 0 then 'endpoint.recovered' when 1 then 'endpoint.failing' when 100 then 'endpoint.disabled'
                          else 'endpoint.unhealthy' end;
  disables boolean;
begin
  -- One that an open transaction holds is reported later.
  select * into e from endpoint x where x.id = which for no key update skip locked;
  if not found or e.reported <> was or e.status not in ('active', 'disabled')
     or (stage = 0 and e.failing_since is not null)
     or (stage between 1 and 90 and (e.failing_since is null or e.status <> 'active')) then
    return null;
  end if;
  disables := stage = 100 and e.status = 'active';
  update endpoint x
  set reported = stage,
      status = case when disables then 'disabled' else x.status end,
      status_by = case when disables then 'postrider' else x.status_by end,
      status_reason = case when disables then format('every attempt failed since %s',
                             to_char(e.failing_since at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"'))
                           else x.status_reason end,
      status_since = case when disables then now() else x.status_since end,
      updated_at = case when disables then now() else x.updated_at end
  where x.id = which
  returning * into e;
  perform operational_event(kind, json_build_object(
    'tenant_id', e.tenant_id, 'endpoint_id', e.public_id, 'status', e.status, 'status_reason', e.status_reason,
    'failing_since', e.failing_since, 'last_success_at', e.last_success_at,
    'percent', case when stage between 50 and 100 then stage end,
    'disabled_at', case when stage between 50 and 90 then e.failing_since + span end));

  contacts := contacts_to_tell(e.tenant_id);
  if (stage = 0 and e.told = 0) or (stage = 100 and e.status_by = 'customer') then
    -- They know nothing of the trouble, or disabled it themselves.
    delete from notice n where n.endpoint_id = which;
  elsif stage <> 1 and contacts is not null then
    insert into notice (endpoint_id, tenant_id, kind, stage, failing_since, cause, contacts, due_at)
    values (which, e.tenant_id,
            case stage when 0 then 'recovered' when 100 then 'disabled' else 'warning' end,
            stage, e.failing_since,
            case when stage <> 100 then null when disables then 'failing' when e.status_by = 'postrider' then 'gone'
                 else 'operator' end,
            contacts, greatest(now(), e.told_at + interval '1 hour'))
    on conflict (endpoint_id) do update
      set kind = excluded.kind, stage = excluded.stage, failing_since = excluded.failing_since,
          cause = excluded.cause, contacts = excluded.contacts, tries = 0, created_at = now();
  end if;
  if disables then
    perform note_change('endpoint', e.tenant_id, which);
  end if;
  return kind;
end
$$;

-- Tells operators of the dead letters of minutes that are over, one event per endpoint and minute; some at a time.
-- Returns how many events.
create function report_dead_letters(at_most integer) returns integer
language plpgsql set search_path = postrider, pg_temp as $$
declare
  told record;
  events integer := 0;
begin
  for told in
    with taken as (
      select m.endpoint_id, m.minute, m.cause
      from dead_letter_minute m
      where m.minute < date_trunc('minute', now())
      order by m.minute
      limit at_most
      for update skip locked
    ),
    gone as (
      delete from dead_letter_minute m
      using taken t
      where m.endpoint_id = t.endpoint_id
        and m.minute = t.minute
        and m.cause = t.cause
      returning m.endpoint_id, m.minute, m.cause, m.letters
    )
    select e.tenant_id, e.public_id, g.minute, sum(g.letters) as letters, json_object_agg(g.cause, g.letters) as causes
    from gone g
    join endpoint e on e.id = g.endpoint_id
    where e.tenant_id <> 'postrider'
    group by e.tenant_id, e.public_id, g.minute
  loop
    perform operational_event('delivery.dead_lettered', json_build_object(
      'tenant_id', told.tenant_id, 'endpoint_id', told.public_id, 'minute', told.minute, 'dead_letters', told.letters,
      'causes', told.causes));
    events := events + 1;
  end loop;
  return events;
end
$$;

-- ── leases of postrider's own duties ───────────────────────────────────────────────────────────────────────────────

insert into session_lease (name) values ('retention'), ('refanout'), ('dead_letter_count');

-- ── retention ──────────────────────────────────────────────────────────────────────────────────────────────────

-- From when on events (and dead letters) and attempts are kept: the start of the oldest day. Raised before retention looks
-- at the days that end, so that nothing new comes to need them. `below`: the smallest id that is not past its time.
-- History of older deliveries is written to the kept tables directly.
create table kept_since (
  name text primary key,
  since timestamptz not null,
  below uuid not null
);
insert into kept_since (name, since, below)
values ('events', '-infinity', '00000000-0000-0000-0000-000000000000'),
       ('attempts', '-infinity', '00000000-0000-0000-0000-000000000000');

-- Keys live as long as their events.
create index event_key_by_event on event_key (event_id);
create index pause_span_ended on pause_span (until) where until is not null;

-- The ids from `low` on and below `high` in a table of events or attempts that unfinished replays of ranges still need, in
-- order: events that they have yet to look at, and for "missing" also the attempts, which tell whether a delivery was
-- ever made. Indexes: replay_unfinished, and the table's own by tenant.
create function needed_by_replays(parent text, source regclass, low uuid, high uuid, at_most integer)
returns setof uuid language plpgsql stable set search_path = postrider, pg_temp as $$
begin
  if parent = 'event' then
    return query execute format($q$
      select distinct n.id
      from replay r
      cross join lateral (
        select e.id
        from %s e
        where e.tenant_id = r.tenant_id
          and e.id >= greatest($1, id_floor(r.since), case when r.is_counted then first_delivery_id(r.after_id) end)
          and e.id < least($2, id_floor(r.until))
          and (r.event_types is null or type_patterns(e.type) && r.event_types)
        order by e.id
        limit $3
      ) as n
      where r.status in ('queued', 'running')
        and r.scope in ('missing', 'all')
      order by n.id
      limit $3
    $q$, source) using low, high, at_most;
  else
    return query execute format($q$
      select distinct n.delivery_id
      from replay r
      cross join lateral (
        select a.delivery_id
        from %s a
        where a.tenant_id = r.tenant_id
          and a.delivery_id >= greatest($1, id_floor(r.since),
                                        case when r.is_counted then first_delivery_id(r.after_id) end)
          and a.delivery_id < least($2, id_floor(r.until))
        order by a.delivery_id
        limit $3
      ) as n
      where r.status in ('queued', 'running')
        and r.scope = 'missing'
      order by n.delivery_id
      limit $3
    $q$, source) using low, high, at_most;
  end if;
end
$$;

-- What keeps a day of the inbox from being dropped: messages that are not done, or dead and neither retried nor discarded,
-- except those of a source that was deleted. Null: nothing.
create function inbox_held_by(day date) returns text language plpgsql stable
set search_path = postrider, pg_temp as $$
declare
  low uuid := id_floor(day::timestamp at time zone 'UTC');
  high uuid := id_floor((day + 1)::timestamp at time zone 'UTC');
begin
  return case
    when exists (select from inbox_queue w where w.id >= low and w.id < high and w.bucket >= 0)
      then 'a message that is not done'
    when exists (select
                 from inbox m
                 join source s on s.id = m.source_id
                 where m.id >= low and m.id < high and m.dead_at is not null)
      then 'a dead message'
  end;
end
$$;

-- ── deliveries that wait too long ──────────────────────────────────────────────────────────────────────────────

alter table endpoint
  add column cancel_reason text,               -- why retention set cancel_before; null: a person did
  add column waiting_reported_at timestamptz;  -- when operators were told that deliveries of it will be canceled
create index endpoint_waiting_reported on endpoint (id) where waiting_reported_at is not null;

-- What the deliveries of an endpoint wait for before any of them is sent; null: nothing.
create function waits_for(endpoint_status text, tenant_status text, held_reason text) returns text language sql stable
set search_path = postrider, pg_temp as $$
  select case
    when endpoint_status = 'paused' then 'the endpoint is paused'
    when tenant_status = 'paused' then 'the tenant is paused'
    when held_reason is not null then 'nothing can be signed for the endpoint'
    when (select is_paused from brakes) then 'all sending is paused'
  end
$$;

-- ── erasure ────────────────────────────────────────────────────────────────────────────────────────────────────

-- Empties the bodies of these events and cancels what is pending of them, replays included; what is being sent at this
-- moment may still arrive. Returns how many were erased, and how many deliveries canceled. Locks: the events, the rows.
create function erase_payloads(events uuid[]) returns table (erased bigint, canceled bigint)
language plpgsql set search_path = postrider, pg_temp as $$
#variable_conflict use_column
declare
  ended record;
begin
  canceled := 0;
  -- All versions of each.
  events := events || array(select v.id
                            from unnest(events) as i (id)
                            join event e on e.id = i.id and e.main_id is not null
                            join event v on v.id >= first_delivery_id(i.id) and v.id <= last_delivery_id(i.id)
                            where v.id <> i.id);
  with gone as (
    update event e
    set body = '',
        subject = null,
        erased_at = now()
    where e.id = any (events)
      and e.id >= (select min(i::text)::uuid from unnest(events) as i)
      and e.id <= (select max(i::text)::uuid from unnest(events) as i)
      and e.erased_at is null
    returning e.id, e.main_id
  )
  select count(*) into erased from gone where main_id is null or main_id = id;
  delete from fanout_task f where f.event_id = any (events);
  for ended in
    with wanted as (
      select l.bucket, q.id
      from unnest(events) as i (event_id)
      cross join bucket_lease l
      join queue q on q.bucket = l.bucket
                  and q.id >= (left(replace(i.event_id::text, '-', ''), 20) || repeat('0', 12))::uuid
                  and q.id <= (left(replace(i.event_id::text, '-', ''), 20) || repeat('f', 12))::uuid
      union
      select e.bucket, r.delivery_id
      from replayed r
      join endpoint e on e.id = r.endpoint_id
      where r.event_id = any (events)
    ),
    gone as (
      delete from queue q
      using wanted w
      where q.bucket = w.bucket
        and q.id = w.id
      returning q.*
    ),
    counted as (
      insert into replay_progress as p (replay_id, bucket, canceled)
      select g.replay_id, g.bucket, count(*)
      from gone g
      where g.replay_id is not null
      group by g.replay_id, g.bucket
      order by g.replay_id, g.bucket
      on conflict (replay_id, bucket) do update
        set canceled = p.canceled + excluded.canceled
    )
    insert into attempt (delivery_id, attempt, bucket, endpoint_id, event_id, tenant_id, outcome, started_at, total_us,
                         node_id, created_at, replay_id, error_detail, is_kept)
    select g.id, 0, g.bucket, g.endpoint_id, g.event_id, g.tenant_id, 'canceled', now(), 0,
           '00000000-0000-0000-0000-000000000000', g.created_at, g.replay_id, 'the payload was erased',
           g.id < (select below from kept_since where name = 'attempts')
    from gone g
    returning delivery_id, endpoint_id, tenant_id
  loop
    canceled := canceled + 1;
    perform note_change('cancel', ended.tenant_id, ended.endpoint_id, ended.delivery_id);
  end loop;
  return next;
end
$$;

-- ── for people ─────────────────────────────────────────────────────────────────────────────────────────────────

create view webhook_replay_requests as
select id as replay_id, delivery_id, requested_by, reason, created_at, tenant_id, kind, status, matched, queued,
       'rpl_' || replace(id::text, '-', '') as replay, 'dlv_' || replace(delivery_id::text, '-', '') as delivery
from replay;

do $$
begin
  if to_regprocedure('postrider.grant_support()') is not null then
    perform postrider.grant_support();
  end if;
end
$$;
