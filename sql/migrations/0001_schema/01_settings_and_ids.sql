-- Settings that are fixed for the life of the schema, and IDs.
--
-- The files of this folder are one migration, in the order of their names. Hot tables (event, queue, attempt, dead_letter,
-- publish_log, event_key) have no foreign keys, and their statements contain the distribution column (event: id; queue,
-- attempt, dead_letter: bucket), so that they can be distributed.
-- {{buckets}} is the configured number of buckets.

create table setting (
  name text primary key,
  value text not null
);
insert into setting (name, value) values ('buckets', '{{buckets}}');

-- ── time-ordered IDs ─────────────────────────────────────────────────────────────────────────────────────────────────

-- An ID has 48 bits of milliseconds, 12 of sequence, 14 of slot and 48 random bits. Slots 0 to 8191 belong to nodes; rows
-- of the outbox use the other half, from 8192 on. IDs made in SQL use two slots that no node gets: bffe for replays and
-- their deliveries, bfff for operational events. An ID of the outbox could begin like one of these only if it were made in
-- the same millisecond with the same 25 bits.
create sequence id_sequence as integer minvalue 0 maxvalue 4095 cycle;

-- A new ID by the clock of the database.
create function new_id(slot text default 'bffe') returns uuid language sql volatile as $$
  select (lpad(to_hex(floor(extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0')
          || '7' || lpad(to_hex(nextval('postrider.id_sequence')), 3, '0')
          || slot
          || left(replace(gen_random_uuid()::text, '-', ''), 12))::uuid
$$;

-- The smallest ID of time t or later.
create function id_floor(t timestamptz) returns uuid language sql immutable strict as $$
  select (lpad(to_hex(ceil(extract(epoch from t) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;

-- The time in an ID, in milliseconds.
create function id_time(id uuid) returns timestamptz language sql immutable strict as $$
  select to_timestamp(('x' || lpad(left(replace(id::text, '-', ''), 12), 16, '0'))::bit(64)::bigint / 1000.0)
$$;

-- The delivery IDs of an event are between these two, except replays.
create function first_delivery_id(event uuid) returns uuid language sql immutable strict parallel safe as $$
  select (left(replace(event::text, '-', ''), 20) || '000000000000')::uuid
$$;
create function last_delivery_id(event uuid) returns uuid language sql immutable strict parallel safe as $$
  select (left(replace(event::text, '-', ''), 20) || 'ffffffffffff')::uuid
$$;

-- ── public IDs ───────────────────────────────────────────────────────────────────────────────────────────────────────

-- The uuid in a public ID with this prefix; null for anything else.
create function parse_public_id(public_id text, prefix text) returns uuid language sql immutable strict parallel safe as $$
  select case when public_id ~ ('^' || prefix || '_[0-9a-f]{32}$') then right(public_id, 32)::uuid end
$$;

create function public_id_of(prefix text, id uuid) returns text language sql immutable strict parallel safe as $$
  select prefix || '_' || replace(id::text, '-', '')
$$;

-- 'msg_…' to its uuid; null for anything else.
create function message_id(message text) returns uuid language sql immutable strict parallel safe as $$
  select postrider.parse_public_id(message, 'msg')
$$;

-- ── event types ──────────────────────────────────────────────────────────────────────────────────────────────────────

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
