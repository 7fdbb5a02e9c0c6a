-- The application side of the outbox: publishing, and roles.

-- Other versions of postrider had these functions with other arguments. With defaults, calls would be ambiguous.
do $$
declare
  old regprocedure;
begin
  for old in
    select p.oid
    from pg_proc p
    where p.pronamespace = 'postrider'::regnamespace
      and (p.proname, p.pronargs) in (('publish', 8), ('emit', 8), ('outbox_write', 9))
  loop
    execute 'drop function ' || old;
  end loop;
end
$$;

-- ── publishing ─────────────────────────────────────────────────────────────────────────────────────────────────

-- Identifies this outbox in the running server: different for every database, server process and copy.
create or replace function outbox_location() returns bigint language sql stable as $$
  select pg_catalog.hashtext(pg_catalog.pg_relation_filepath('postrider.outbox_capture')
           || extract(epoch from pg_catalog.pg_postmaster_start_time()))::bigint & 4294967295
$$;

-- The ID of an event: the form of all event IDs (time, sequence, slot, random), with a slot that no node gets. 25 bits of
-- the row's number make the first 10 bytes unique. It is inlined.
create or replace function outbox_event_id(n bigint, at_ms bigint) returns text
language sql volatile as $$
  select pg_catalog.lpad(pg_catalog.to_hex((at_ms << 16) | 28672 | (n & 4095)), 16, '0')
    || pg_catalog.to_hex(40960 | ((n >> 12) & 8191))
    || pg_catalog.right(pg_catalog.gen_random_uuid()::text, 12)
$$;

-- Why the text is not JSON, or null. Catching the error takes a subtransaction, so this is called only where invalid events
-- are set aside.
create or replace function outbox_data_error(data text) returns text
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  return case when data::json is null then 'data is required' end;
exception when others then
  return 'data is not JSON: ' || sqlerrm;
end
$$;

-- Stores an invalid event as a row that is set aside, with the error, and returns its ID. The relay finds the row as a fresh
-- one, reports it and counts the attempt. Texts are cut to a length that still breaks the rule. Of data over 1 MiB only the
-- beginning is kept: characters have up to four bytes. What is not valid and not needed to find the author is dropped.
create or replace function outbox_set_aside(
  tenant text, type text, data text, id text, version text,
  occurred_at timestamptz, subject text, traceparent text, error text
) returns text
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  n bigint := nextval('postrider.outbox_id_seq');
  at timestamptz := clock_timestamp();
  at_ms bigint := extract(epoch from at) * 1000;
  made text := postrider.outbox_event_id(n, at_ms);
  is_cut boolean := coalesce(octet_length(data) > 1048576, false);
begin
  insert into postrider.outbox
    (id, event_id, public_id, tenant_id, type, data, version, occurred_at, subject, traceparent, created_at,
     last_error, set_aside_at, cut_from_bytes)
  values (n, made::uuid, left(id, 300), left(coalesce(tenant, ''), 300), left(coalesce(type, ''), 300),
          case when is_cut then left(data, 262144) else coalesce(data, '') end, left(version, 300),
          case when occurred_at >= '0001-01-01 00:00:00+00' and occurred_at < '10000-01-01 00:00:00+00' then occurred_at end,
          left(subject, 300),
          case when traceparent ~ '^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$' then traceparent end,
          at, left(error, 1000), at, case when is_cut then octet_length(data) end);
  if pg_sequence_last_value('postrider.outbox_idle_until') > at_ms then
    perform pg_notify('postrider_outbox', '');
  end if;
  return coalesce(nullif(left(id, 300), ''), 'evt_' || made);
end
$$;

-- publish() and emit(). Invalid arguments fail the caller's transaction at once or, if `on_invalid` or else the outbox says
-- so, are set aside; the relay validates the tenant and the schema.
--
-- Written to be cheap in a short transaction (docs/decisions/what-publish-costs.md): optional arguments are checked only if
-- one is given, expressions read no table, and no trigger does work at commit.
--
-- A row is one insert. A message has 32 bytes that authenticate it, a JSON array, a line feed and the data. The transaction
-- gets its ID before it checks whether messages are read: a relay that stops reading waits for the transactions that may
-- have checked before (outbox/capture.sql, settled_xid).
create or replace function outbox_write(
  is_emitted boolean, tenant text, type text, data text, id text, version text,
  occurred_at timestamptz, subject text, traceparent text, on_invalid text
) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  wrong text;
  n bigint;
  made text;
  at timestamptz := clock_timestamp();
  at_ms bigint := extract(epoch from at) * 1000;
  key bytea;
  message bytea;
  own_xid xid8;
  written_to pg_lsn;
begin
  wrong := case
    when tenant is null or length(tenant) > 64 or tenant !~ '^[A-Za-z0-9_-][A-Za-z0-9_.:@-]*$' then
      'tenant must have 1 to 64 of the characters A-Z, a-z, 0-9, _, -, ., : and @, and must not begin with ., : or @'
    when tenant = 'postrider' then
      'the tenant postrider is reserved for operational events'
    when type is null or length(type) > 128 or type !~ '^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$' then
      'type must be words of A-Z, a-z, 0-9, _ and - joined by dots, with at most 128 characters'
    when data is null then
      'data is required (JSON null is written ''null'')'
  end;
  if wrong is null and octet_length(data) > 32768 then
    select 'data is ' || octet_length(data) || ' bytes; the limit is ' || s.data_bytes_max
    into wrong
    from postrider.outbox_setting s
    where octet_length(data) > s.data_bytes_max;
  end if;
  if wrong is null and not (id, version, occurred_at, subject, traceparent) is null then
    wrong := case
      when id !~ '^[A-Za-z0-9_-]{1,64}$' then
        'id must have 1 to 64 of the characters A-Z, a-z, 0-9, _ and -'
      when octet_length(version) not between 1 and 64 then
        'version must have 1 to 64 bytes'
      when octet_length(subject) not between 1 and 255 then
        'subject must have 1 to 255 bytes'
      when occurred_at < '0001-01-01 00:00:00+00' or occurred_at >= '10000-01-01 00:00:00+00' then
        'occurred_at must be a time in the years 1 to 9999'
    end;
    -- A traceparent that is not valid W3C Trace Context is dropped: a client's header must never fail a business
    -- transaction.
    if traceparent !~ '^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$' then
      traceparent := null;
    end if;
  end if;
  -- The cast fails when it is not JSON.
  if wrong is not null or coalesce(on_invalid, postrider.outbox_on_invalid()) <> 'refuse' or data::json is null then
    if on_invalid not in ('refuse', 'set_aside') then
      wrong := 'on_invalid must be ''refuse'' or ''set_aside''';
    elsif coalesce(on_invalid, postrider.outbox_on_invalid()) = 'set_aside' then
      wrong := coalesce(wrong, postrider.outbox_data_error(data));
      if wrong is not null then
        return postrider.outbox_set_aside(tenant, type, data, id, version, occurred_at, subject, traceparent, wrong);
      end if;
    end if;
    if wrong is not null then
      raise exception 'postrider.%: %', case when is_emitted then 'emit' else 'publish' end, wrong
        using errcode = 'invalid_parameter_value';
    end if;
  end if;
  n := nextval('postrider.outbox_id_seq');
  made := postrider.outbox_event_id(n, at_ms);
  if is_emitted then
    own_xid := pg_current_xact_id();
    select s.capture_key
    into key
    from postrider.outbox_capture c, postrider.outbox_setting s
    where c.last_value >> 32 > extract(epoch from at)::bigint - 1600000000
      and (c.last_value & 4294967295) = postrider.outbox_location();
    if found then
      message := convert_to(
        json_build_array(n, made, tenant, type, id, version, (extract(epoch from occurred_at) * 1000000)::bigint,
                         subject, traceparent, (extract(epoch from at) * 1000000)::bigint)::text
          || chr(10) || data, 'UTF8');
      written_to := pg_logical_emit_message(true, 'postrider', sha256(key || sha256(key || message)) || message);
      return coalesce(id, 'evt_' || made);
    end if;
  end if;
  insert into postrider.outbox
    (id, event_id, public_id, tenant_id, type, data, version, occurred_at, subject, traceparent, created_at)
  values (n, made::uuid, id, tenant, type, data, version, occurred_at, subject, traceparent, at);
  -- No NOTIFY while the relay is busy, or if it polls only: a NOTIFY makes all commits of the server wait for each other. No
  -- table is read: a flag in a row would leave a dead version whenever the relay becomes idle. This comes after the insert:
  -- a relay that becomes idle between this check and our commit sees our transaction in progress, and soon reads again
  -- (Relay::nap).
  if pg_sequence_last_value('postrider.outbox_idle_until') > at_ms then
    perform pg_notify('postrider_outbox', '');
  end if;
  return coalesce(id, 'evt_' || made);
end
$$;

-- All of these are inlined, so a call costs no more than outbox_write().
create or replace function publish(
  tenant text, type text, data text, id text default null, version text default null,
  occurred_at timestamptz default null, subject text default null, traceparent text default null,
  on_invalid text default null
) returns text
language sql as $$
  select postrider.outbox_write(false, tenant, type, data, id, version, occurred_at, subject, traceparent, on_invalid)
$$;

create or replace function publish(
  tenant text, type text, data json, id text default null, version text default null,
  occurred_at timestamptz default null, subject text default null, traceparent text default null,
  on_invalid text default null
) returns text
language sql as $$
  select postrider.outbox_write(false, tenant, type, data::text, id, version, occurred_at, subject, traceparent, on_invalid)
$$;

create or replace function publish(
  tenant text, type text, data jsonb, id text default null, version text default null,
  occurred_at timestamptz default null, subject text default null, traceparent text default null,
  on_invalid text default null
) returns text
language sql as $$
  select postrider.outbox_write(false, tenant, type, data::text, id, version, occurred_at, subject, traceparent, on_invalid)
$$;

-- Why an event cannot have these versions, or null.
create or replace function outbox_versions_error(versions json, version text) returns text
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  wrong text;
begin
  if versions is null or json_typeof(versions) <> 'object' then
    return 'versions must be an object with the data of each version, by version name';
  end if;
  select case
    when count(*) not between 1 and 10 then 'versions must have 1 to 10 versions'
    when count(*) <> count(distinct v.key) then 'versions contains a version more than once'
    when min(octet_length(v.key)) < 1 or max(octet_length(v.key)) > 64 then
      'each name in versions must have 1 to 64 bytes'
    when version is not null and not bool_or(v.key = version) then 'version must be a member of versions'
    when max(octet_length(v.value::text)) > min(s.data_bytes_max) then
      'a version is ' || max(octet_length(v.value::text)) || ' bytes; the limit is ' || min(s.data_bytes_max)
  end
  into wrong
  from json_each(versions) v
  left join postrider.outbox_setting s on true;
  return wrong;
exception when others then
  return 'versions: ' || sqlerrm;
end
$$;

-- publish() for an event in several versions. It always writes a row. The default is `version`, without it the greatest name
-- in byte order.
create or replace function publish_versions(
  tenant text, type text, versions json, version text default null, id text default null,
  occurred_at timestamptz default null, subject text default null, traceparent text default null,
  on_invalid text default null
) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  wrong text := postrider.outbox_versions_error(versions, version);
  chosen text;
  chosen_data text;
  returned text;
begin
  if on_invalid not in ('refuse', 'set_aside') then
    raise exception 'postrider.publish_versions: on_invalid must be ''refuse'' or ''set_aside'''
      using errcode = 'invalid_parameter_value';
  end if;
  if wrong is not null and coalesce(on_invalid, postrider.outbox_on_invalid()) = 'refuse' then
    raise exception 'postrider.publish_versions: %', wrong using errcode = 'invalid_parameter_value';
  end if;
  if wrong is not null then
    returned := postrider.outbox_set_aside(tenant, type, versions::text, id, version, occurred_at, subject, traceparent, wrong);
    update postrider.outbox o
    set versions = o.data
    where o.id = currval('postrider.outbox_id_seq');
    return returned;
  end if;
  select v.key, v.value::text
  into chosen, chosen_data
  from json_each(versions) v
  where version is null or v.key = version
  order by v.key collate "C" desc
  limit 1;
  returned := postrider.outbox_write(false, tenant, type, chosen_data, id, chosen, occurred_at, subject, traceparent,
                                     on_invalid);
  update postrider.outbox o
  set versions = publish_versions.versions::text
  where o.id = currval('postrider.outbox_id_seq');
  return returned;
end
$$;

-- Like publish(), but writes to no table while a relay reads the replication slot.
create or replace function emit(
  tenant text, type text, data text, id text default null, version text default null,
  occurred_at timestamptz default null, subject text default null, traceparent text default null,
  on_invalid text default null
) returns text
language sql as $$
  select postrider.outbox_write(true, tenant, type, data, id, version, occurred_at, subject, traceparent, on_invalid)
$$;

create or replace function emit(
  tenant text, type text, data json, id text default null, version text default null,
  occurred_at timestamptz default null, subject text default null, traceparent text default null,
  on_invalid text default null
) returns text
language sql as $$
  select postrider.outbox_write(true, tenant, type, data::text, id, version, occurred_at, subject, traceparent, on_invalid)
$$;

create or replace function emit(
  tenant text, type text, data jsonb, id text default null, version text default null,
  occurred_at timestamptz default null, subject text default null, traceparent text default null,
  on_invalid text default null
) returns text
language sql as $$
  select postrider.outbox_write(true, tenant, type, data::text, id, version, occurred_at, subject, traceparent, on_invalid)
$$;

-- How emit() writes: `table`, or `cdc`, which writes into the log while a relay reads it. A relay applies a change within
-- seconds. pgoutput requires a publication; it has no tables, because messages belong to none.
create or replace function outbox_set_mode(new_mode text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  update postrider.outbox_setting set mode = new_mode where mode <> new_mode;
  if new_mode = 'cdc' and not exists (select from pg_publication where pubname = 'postrider') then
    create publication postrider;
  end if;
  -- Rejected messages become rows.
  if new_mode = 'cdc' and exists (select from pg_roles where rolname = 'postrider_relay') then
    grant insert on postrider.outbox to postrider_relay;
  end if;
end
$$;

-- ── roles ──────────────────────────────────────────────────────────────────────────────────────────────────────

-- postrider_publisher may only call publish() and emit(); postrider_relay may only publish the rows of this outbox. If
-- postrider is not allowed to create roles, an administrator creates them and calls this function again.
create or replace function grant_outbox() returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if exists (select from pg_roles where rolname = 'postrider_publisher') then
    grant usage on schema postrider to postrider_publisher;
    grant execute on function
      postrider.publish(text, text, text, text, text, timestamptz, text, text, text),
      postrider.publish(text, text, json, text, text, timestamptz, text, text, text),
      postrider.publish(text, text, jsonb, text, text, timestamptz, text, text, text),
      postrider.emit(text, text, text, text, text, timestamptz, text, text, text),
      postrider.emit(text, text, json, text, text, timestamptz, text, text, text),
      postrider.emit(text, text, jsonb, text, text, timestamptz, text, text, text),
      postrider.outbox_write(boolean, text, text, text, text, text, timestamptz, text, text, text),
      postrider.publish_versions(text, text, json, text, text, timestamptz, text, text, text)
      to postrider_publisher;
  end if;
  if exists (select from pg_roles where rolname = 'postrider_relay') then
    grant usage on schema postrider to postrider_relay;
    grant select, update, delete on postrider.outbox to postrider_relay;
    grant select, update on postrider.outbox_setting, postrider.outbox_slot to postrider_relay;
    grant select, update on sequence postrider.outbox_capture, postrider.outbox_idle_until to postrider_relay;
    grant execute on function postrider.outbox_location(), postrider.outbox_set_mode(text) to postrider_relay;
    -- In postrider's own database its own role relays, and the table has its other leases, too.
    if to_regclass('postrider.bucket_lease') is null then
      grant select, update on postrider.session_lease to postrider_relay;
      grant execute on function postrider.hold_lease(text, bigint) to postrider_relay;
    end if;
  end if;
end
$$;
revoke execute on function
  publish(text, text, text, text, text, timestamptz, text, text, text),
  publish(text, text, json, text, text, timestamptz, text, text, text),
  publish(text, text, jsonb, text, text, timestamptz, text, text, text),
  emit(text, text, text, text, text, timestamptz, text, text, text),
  emit(text, text, json, text, text, timestamptz, text, text, text),
  emit(text, text, jsonb, text, text, timestamptz, text, text, text),
  outbox_write(boolean, text, text, text, text, text, timestamptz, text, text, text),
  publish_versions(text, text, json, text, text, timestamptz, text, text, text), outbox_versions_error(json, text),
  outbox_set_aside(text, text, text, text, text, timestamptz, text, text, text), outbox_data_error(text),
  outbox_event_id(bigint, bigint), outbox_on_invalid(), outbox_keep_on_invalid(),
  outbox_location(), outbox_set_mode(text), outbox_reject_invalid(), hold_lease(text, bigint), grant_outbox()
  from public;

do $$
begin
  if not exists (select from pg_roles where rolname = 'postrider_publisher') then
    create role postrider_publisher nologin;
  end if;
exception when insufficient_privilege or unique_violation or duplicate_object then
  raise notice 'the role postrider_publisher could not be created: create it, then run select postrider.grant_outbox()';
end
$$;
select grant_outbox();

do $application_side_ends$ begin end $application_side_ends$;
