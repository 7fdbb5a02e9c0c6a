-- Made by `./dev schema` from sql/migrations, to be read and compared. Do not edit.

CREATE SCHEMA postrider;

CREATE TYPE postrider.inbox_message AS (
	id text,
	source text,
	provider_id text,
	partition_key text,
	headers json,
	body text,
	attempts integer,
	received_at timestamp with time zone
);

CREATE FUNCTION postrider.grant_consumer() RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
  if not exists (select from pg_roles where rolname = 'postrider_consumer') then
    begin
      create role postrider_consumer nologin;
    exception
      when insufficient_privilege then
        raise notice 'the role postrider_consumer is missing, and this user may not make it';
        return;
      when duplicate_object or unique_violation then
        null;  -- another database of the server was faster
    end;
  end if;
  grant usage on schema postrider to postrider_consumer;
  grant execute on function postrider.inbox_claim, postrider.inbox_ack, postrider.inbox_extend, postrider.inbox_nack
    to postrider_consumer;
end
$$;

CREATE FUNCTION postrider.grant_outbox() RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  if exists (select from pg_roles where rolname = 'postrider_publisher') then
    grant usage on schema postrider to postrider_publisher;
    grant execute on function
      postrider.publish(text, text, text, text, text, timestamptz, text, text),
      postrider.publish(text, text, json, text, text, timestamptz, text, text),
      postrider.publish(text, text, jsonb, text, text, timestamptz, text, text)
      to postrider_publisher;
  end if;
  if exists (select from pg_roles where rolname = 'postrider_relay') then
    grant usage on schema postrider to postrider_relay;
    grant select, update, delete on postrider.outbox to postrider_relay;
    grant select, update on postrider.outbox_relay, postrider.outbox_setting to postrider_relay;
  end if;
end
$$;

CREATE FUNCTION postrider.id_floor(t timestamp with time zone) RETURNS uuid
    LANGUAGE sql IMMUTABLE STRICT
    AS $$
  select (lpad(to_hex(ceil(extract(epoch from t) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;

CREATE FUNCTION postrider.id_time(id uuid) RETURNS timestamp with time zone
    LANGUAGE sql IMMUTABLE STRICT
    AS $$
  select to_timestamp(('x' || lpad(left(replace(id::text, '-', ''), 12), 16, '0'))::bit(64)::bigint / 1000.0)
$$;

CREATE FUNCTION postrider.inbox_ack(worker text, ids text[]) RETURNS integer
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'postrider', 'pg_temp'
    AS $$
  select postrider.inbox_finish('consume', inbox_ack.worker,
                                (select array_agg(postrider.message_id(i)) from unnest(inbox_ack.ids) as i))
$$;

CREATE FUNCTION postrider.inbox_backoff(attempts integer) RETURNS interval
    LANGUAGE sql
    AS $$
  select make_interval(secs => least(3600, 10 * 2 ^ least(greatest(attempts - 1, 0), 20)) * (1 + random() * 0.2))
$$;

CREATE FUNCTION postrider.inbox_bury(of_work text, ids uuid[], error text) RETURNS void
    LANGUAGE sql
    AS $$
  with buried as (
    delete from postrider.inbox_queue q
    where q.id = any (ids)
      and q.work = of_work
    returning q.id, q.attempts, q.last_error
  )
  update postrider.inbox m
  set
    status = 'dead',
    dead_at = now(),
    dead_work = array_append(m.dead_work, of_work),
    attempts = b.attempts,
    last_error = coalesce(inbox_bury.error, b.last_error)
  from buried b
  where m.id = b.id
    and m.id >= (select min(i::text)::uuid from unnest(ids) as i)
    and m.id <= (select max(i::text)::uuid from unnest(ids) as i)
$$;

CREATE FUNCTION postrider.inbox_candidates(of_work text, of_source text, at timestamp with time zone, wanted integer) RETURNS uuid[]
    LANGUAGE plpgsql
    AS $$
declare
  window_rows constant integer := 500;
  keys_looked_at constant integer := 1000;
  buckets constant integer := (select value::integer from postrider.setting where name = 'buckets');
  start constant integer := floor(random() * buckets);
  locked uuid[];
  more uuid[];
begin
  select coalesce(array_agg(due.id), '{}') into locked
  from (
    select q.id
    from postrider.inbox_queue q
    where q.source_id = of_source and q.work = of_work and not q.is_ordered and q.due_at <= at
    order by q.due_at, q.position
    limit wanted
    for update skip locked
  ) as due;

  if cardinality(locked) < wanted then
    with oldest as materialized (
      select q.id, q.bucket, q.partition_key, q.position
      from postrider.inbox_queue q
      where q.source_id = of_source and q.work = of_work and q.is_ordered and q.due_at <= at
      order by q.due_at, q.position
      limit window_rows
    ),
    heads as materialized (
      select o.id, o.position
      from oldest o
      where not exists (
        select
        from postrider.inbox_queue earlier
        where earlier.source_id = of_source
          and earlier.work = of_work
          and earlier.is_ordered
          and earlier.bucket = o.bucket
          and earlier.partition_key = o.partition_key
          and earlier.position < o.position
      )
    )
    select coalesce(array_agg(due.id), '{}') into more
    from (
      select q.id
      from heads h
      join postrider.inbox_queue q on q.id = h.id and q.work = of_work
      where q.due_at <= at
      order by h.position
      limit wanted - cardinality(locked)
      for update of q skip locked
    ) as due;
    locked := locked || more;
  end if;

  -- From the random bucket to the last, then from the first.
  for round in 1..2 loop
    exit when cardinality(locked) >= wanted;
    with recursive keys (bucket, partition_key, seen) as (
      (
        select q.bucket, q.partition_key, 1
        from postrider.inbox_queue q
        where q.source_id = of_source and q.work = of_work and q.is_ordered
          and q.bucket >= case round when 1 then start else 0 end
          and q.bucket < case round when 1 then buckets else start end
        order by q.bucket, q.partition_key
        limit 1
      )
      union all
      select following.bucket, following.partition_key, k.seen + 1
      from keys k
      cross join lateral (
        select q.bucket, q.partition_key
        from postrider.inbox_queue q
        where q.source_id = of_source and q.work = of_work and q.is_ordered
          and (q.bucket, q.partition_key) > (k.bucket, k.partition_key)
          and q.bucket < case round when 1 then buckets else start end
        order by q.bucket, q.partition_key
        limit 1
      ) as following
      where k.seen < keys_looked_at
    ),
    heads as materialized (
      select head.id
      from keys k
      cross join lateral (
        select q.id, q.due_at
        from postrider.inbox_queue q
        where q.source_id = of_source and q.work = of_work and q.is_ordered
          and q.bucket = k.bucket and q.partition_key = k.partition_key
        order by q.position
        limit 1
      ) as head
      where head.due_at <= at
        and head.id <> all (locked)
    )
    select coalesce(array_agg(due.id), '{}') into more
    from (
      select q.id
      from heads h
      join postrider.inbox_queue q on q.id = h.id and q.work = of_work
      where q.due_at <= at
      limit wanted - cardinality(locked)
      for update of q skip locked
    ) as due;
    locked := locked || more;
  end loop;
  return locked;
end
$$;

CREATE FUNCTION postrider.inbox_claim(worker text, source text, max integer, lease interval) RETURNS SETOF postrider.inbox_message
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'postrider', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
  taken uuid[];
  tries integer[];
begin
  select array_agg(t.id), array_agg(t.attempts) into taken, tries
  from postrider.inbox_take('consume', inbox_claim.worker, inbox_claim.source, inbox_claim.max, inbox_claim.lease) as t;
  if taken is null then
    return;
  end if;
  return query
  select postrider.message_text(m.id), m.source_id, m.provider_id, m.partition_key, m.headers, m.body, t.attempts,
         m.received_at
  from unnest(taken, tries) as t (id, attempts)
  join postrider.inbox m on m.id = t.id
  join postrider.inbox_queue q on q.id = t.id and q.work = 'consume'
  where m.id >= (select min(i::text)::uuid from unnest(taken) as i)
    and m.id <= (select max(i::text)::uuid from unnest(taken) as i)
  order by q.position;
end
$$;

CREATE FUNCTION postrider.inbox_extend(worker text, ids text[], lease interval) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'postrider', 'pg_temp'
    AS $$
declare
  extended int;
begin
  if lease is null or lease < interval '1 second' or lease > interval '1 day' then
    raise exception 'a lease lasts from a second to a day' using errcode = '22023';
  end if;
  update postrider.inbox_queue q
  set due_at = clock_timestamp() + inbox_extend.lease
  where q.id = any (select postrider.message_id(i) from unnest(inbox_extend.ids) as i)
    and q.work = 'consume'
    and q.leased_by = inbox_extend.worker;
  get diagnostics extended = row_count;
  return extended;
end
$$;

CREATE FUNCTION postrider.inbox_fail(of_work text, worker text, of_id uuid, error text, retry_in interval) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
declare
  failed record;
begin
  update postrider.inbox_queue q
  set
    due_at = clock_timestamp() + greatest(coalesce(retry_in, postrider.inbox_backoff(q.attempts)), interval '0'),
    leased_by = null,
    last_error = left(inbox_fail.error, 4096)
  where q.id = of_id
    and q.work = of_work
    and q.leased_by = worker
  returning q.attempts, q.source_id into failed;
  if not found then
    return false;
  end if;
  if failed.attempts >= coalesce((select s.max_attempts from postrider.source s where s.id = failed.source_id), 8) then
    perform postrider.inbox_bury(of_work, array[of_id], left(inbox_fail.error, 4096));
  end if;
  return true;
end
$$;

CREATE FUNCTION postrider.inbox_finish(of_work text, worker text, ids uuid[], event_id text DEFAULT NULL::text) RETURNS integer
    LANGUAGE sql
    AS $$
  with finished as (
    delete from postrider.inbox_queue q
    where q.id = any (ids)
      and q.work = of_work
      and q.leased_by = worker
    returning q.id, q.attempts
  ),
  noted as (
    update postrider.inbox m
    set
      status = case
        when m.dead_at is not null then 'dead'
        when exists (
          select from postrider.inbox_queue other where other.id = m.id and other.work <> of_work
        ) then m.status
        else 'done'
      end,
      attempts = f.attempts,
      done_at = now(),
      event_id = coalesce(inbox_finish.event_id, m.event_id)
    from finished f
    where m.id = f.id
      and m.id >= (select min(i::text)::uuid from unnest(ids) as i)
      and m.id <= (select max(i::text)::uuid from unnest(ids) as i)
  )
  select count(*)::int from finished
$$;

CREATE FUNCTION postrider.inbox_nack(worker text, id text, error text, retry_in interval DEFAULT NULL::interval) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'postrider', 'pg_temp'
    AS $$
begin
  perform postrider.inbox_fail('consume', inbox_nack.worker, postrider.message_id(inbox_nack.id), inbox_nack.error,
                               inbox_nack.retry_in);
end
$$;

CREATE FUNCTION postrider.inbox_take(of_work text, worker text, of_source text, wanted integer, lease interval) RETURNS TABLE(id uuid, attempts integer)
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
declare
  at constant timestamptz := clock_timestamp();  -- not now(): the caller's transaction may be old
  attempts_max constant integer := coalesce((select s.max_attempts from postrider.source s where s.id = of_source), 8);
  candidates uuid[];
  worn_out uuid[];
begin
  if worker is null or worker = '' then
    raise exception 'a worker needs a name' using errcode = '22023';
  end if;
  if lease is null or lease < interval '1 second' or lease > interval '1 day' then
    raise exception 'a lease lasts from a second to a day' using errcode = '22023';
  end if;
  loop
    candidates := postrider.inbox_candidates(of_work, of_source, at, least(greatest(coalesce(wanted, 1), 1), 1000));
    select coalesce(array_agg(q.id), '{}') into worn_out
    from postrider.inbox_queue q
    where q.id = any (candidates) and q.work = of_work and q.attempts >= attempts_max;
    exit when cardinality(worn_out) = 0;
    perform postrider.inbox_bury(of_work, worn_out, 'the lease ended without an answer ' || attempts_max || ' times');
    exit when cardinality(worn_out) < cardinality(candidates);
  end loop;
  return query
  update postrider.inbox_queue q
  set
    due_at = at + lease,
    leased_by = worker,
    attempts = q.attempts + 1
  where q.id = any (candidates)
    and q.work = of_work
    and q.id <> all (worn_out)
  returning q.id, q.attempts;
end
$$;

CREATE FUNCTION postrider.make_partition(parent text, day date) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
declare
  partition text := parent || '_' || to_char(day, 'YYYYMMDD');
  range_column text := case when parent in ('event', 'inbox') then 'id' else 'delivery_id' end;
  low uuid := postrider.id_floor(day::timestamp at time zone 'UTC');
  high uuid := postrider.id_floor((day + 1)::timestamp at time zone 'UTC');
begin
  if to_regclass('postrider.' || partition) is not null then
    return false;
  end if;
  execute format('create table postrider.%I (like postrider.%I including all)', partition, parent);
  if parent = 'inbox' then
    -- Each row is updated once, when it is done: room for that in its own page.
    execute format('alter table postrider.%I set (fillfactor = 85)', partition);
  end if;
  execute format('alter table postrider.%I add constraint by_day check (%I >= %L and %I < %L)',
                 partition, range_column, low, range_column, high);
  execute format('alter table postrider.%I attach partition postrider.%I for values from (%L) to (%L)',
                 parent, partition, low, high);
  execute format('alter table postrider.%I drop constraint by_day', partition);
  return true;
end
$$;

CREATE FUNCTION postrider.make_partitions(back integer DEFAULT 7, ahead integer DEFAULT 14) RETURNS integer
    LANGUAGE sql
    AS $$
  select count(*)::integer
  from unnest(array['event', 'attempt', 'dead_letter', 'inbox']) as parent,
       generate_series(-back, ahead) as day
  where postrider.make_partition(parent, (now() at time zone 'UTC')::date + day)
$$;

CREATE FUNCTION postrider.message_id(outside text) RETURNS uuid
    LANGUAGE sql IMMUTABLE STRICT
    AS $_$
  select case when outside ~ '^msg_[0-9a-f]{32}$' then substr(outside, 5)::uuid end
$_$;

CREATE FUNCTION postrider.message_text(id uuid) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT
    AS $$
  select 'msg_' || replace(id::text, '-', '')
$$;

CREATE FUNCTION postrider.note_change(kind text, tenant_id text, endpoint_id uuid DEFAULT NULL::uuid, delivery_id uuid DEFAULT NULL::uuid) RETURNS bigint
    LANGUAGE sql
    AS $$
  with next as (
    update postrider.registry_version set version = version + 1 returning version
  ),
  revised as (
    insert into postrider.tenant_revision as r (tenant_id, revision)
    select note_change.tenant_id, next.version
    from next
    where note_change.tenant_id is not null
      and note_change.delivery_id is null
    on conflict on constraint tenant_revision_pkey do update
      set revision = excluded.revision
  )
  insert into postrider.control_log (version, kind, tenant_id, endpoint_id, delivery_id)
  select next.version, note_change.kind, note_change.tenant_id, note_change.endpoint_id, note_change.delivery_id
  from next
  returning version
$$;

CREATE FUNCTION postrider.outbox_wake() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  if pg_catalog.pg_try_advisory_lock_shared(8031453476610911603) then
    perform pg_catalog.pg_advisory_unlock_shared(8031453476610911603);
  else
    perform pg_catalog.pg_notify('postrider_outbox', '');
  end if;
  return null;
end
$$;

CREATE FUNCTION postrider.publish(tenant text, type text, data json, id text DEFAULT NULL::text, version text DEFAULT NULL::text, occurred_at timestamp with time zone DEFAULT NULL::timestamp with time zone, subject text DEFAULT NULL::text, traceparent text DEFAULT NULL::text) RETURNS text
    LANGUAGE sql
    AS $$
  select postrider.publish(tenant, type, data::text, id, version, occurred_at, subject, traceparent)
$$;

CREATE FUNCTION postrider.publish(tenant text, type text, data jsonb, id text DEFAULT NULL::text, version text DEFAULT NULL::text, occurred_at timestamp with time zone DEFAULT NULL::timestamp with time zone, subject text DEFAULT NULL::text, traceparent text DEFAULT NULL::text) RETURNS text
    LANGUAGE sql
    AS $$
  select postrider.publish(tenant, type, data::text, id, version, occurred_at, subject, traceparent)
$$;

CREATE FUNCTION postrider.publish(tenant text, type text, data text, id text DEFAULT NULL::text, version text DEFAULT NULL::text, occurred_at timestamp with time zone DEFAULT NULL::timestamp with time zone, subject text DEFAULT NULL::text, traceparent text DEFAULT NULL::text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
  wrong text;
  n bigint;
  made text;
  at timestamptz := clock_timestamp();
begin
  wrong := case
    when tenant is null or tenant !~ '^[A-Za-z0-9_-]{1,64}$' then
      'tenant must be 1 to 64 of A-Z, a-z, 0-9, _ and -'
    when type is null or length(type) > 128 or type !~ '^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$' then
      'type must be words of A-Z, a-z, 0-9, _ and - joined by dots, at most 128 characters'
    when data is null then
      'data is required (JSON null is written ''null'')'
    when id !~ '^[A-Za-z0-9_-]{1,64}$' then
      'id must be 1 to 64 of A-Z, a-z, 0-9, _ and -'
    when octet_length(version) not between 1 and 64 then
      'version must have 1 to 64 bytes'
    when octet_length(subject) not between 1 and 255 then
      'subject must have 1 to 255 bytes'
    when occurred_at < '0001-01-01 00:00:00+00' or occurred_at >= '10000-01-01 00:00:00+00' then
      'occurred_at must be a time in the years 1 to 9999'
    when octet_length(data) > 32768
      and octet_length(data) > (select s.data_bytes_max from postrider.outbox_setting s) then
      'data has ' || octet_length(data) || ' bytes, more than may be sent'
  end;
  if wrong is not null then
    raise exception 'postrider.publish: %', wrong using errcode = 'invalid_parameter_value';
  end if;
  perform data::json;
  -- A trace is passed on only in the form of W3C Trace Context: a header of some client must never fail a business
  -- transaction.
  if traceparent !~ '^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$' then
    traceparent := null;
  end if;
  n := nextval('postrider.outbox_id_seq');
  made := lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0')
    || '7' || lpad(to_hex(n & 4095), 3, '0')
    || to_hex(40960 | ((n >> 12) & 8191))
    || right(gen_random_uuid()::text, 12);
  insert into postrider.outbox
    (id, event_id, outside_id, tenant_id, type, data, version, occurred_at, subject, traceparent, created_at)
  values (n, made::uuid, id, tenant, type, data, version, occurred_at, subject, traceparent, at);
  return coalesce(id, 'evt_' || made);
end
$_$;

CREATE TABLE postrider.api_key (
    id uuid NOT NULL,
    hash bytea NOT NULL,
    role text NOT NULL,
    tenant_id text COLLATE pg_catalog."C",
    payloads boolean DEFAULT true NOT NULL,
    description text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    last_used_at timestamp with time zone,
    CONSTRAINT api_key_role_check CHECK ((role = ANY (ARRAY['admin'::text, 'operator'::text, 'publisher'::text, 'reader'::text])))
);

CREATE TABLE postrider.attempt (
    delivery_id uuid NOT NULL,
    attempt integer NOT NULL,
    bucket integer NOT NULL,
    endpoint_id uuid NOT NULL,
    event_id uuid NOT NULL,
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    outcome text NOT NULL,
    status_code integer,
    error text,
    error_detail text,
    started_at timestamp with time zone NOT NULL,
    dns_us integer,
    connect_us integer,
    tls_us integer,
    first_byte_us integer,
    total_us integer NOT NULL,
    preview text,
    address text,
    next_attempt_at timestamp with time zone,
    node_id uuid NOT NULL,
    created_at timestamp with time zone NOT NULL,
    replay_id uuid,
    CONSTRAINT attempt_outcome_check CHECK ((outcome = ANY (ARRAY['delivered'::text, 'retrying'::text, 'dead_letter'::text, 'canceled'::text])))
)
PARTITION BY RANGE (delivery_id);

CREATE TABLE postrider.bucket_lease (
    bucket integer NOT NULL,
    owner uuid,
    epoch bigint DEFAULT 0 NOT NULL,
    since timestamp with time zone DEFAULT now() NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE postrider.control_log (
    version bigint NOT NULL,
    kind text NOT NULL,
    tenant_id text COLLATE pg_catalog."C",
    endpoint_id uuid,
    delivery_id uuid,
    at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE postrider.dead_letter (
    delivery_id uuid NOT NULL,
    bucket integer NOT NULL,
    endpoint_id uuid NOT NULL,
    event_id uuid NOT NULL,
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    cause text NOT NULL,
    attempts integer NOT NULL,
    status_code integer,
    error text,
    error_detail text,
    created_at timestamp with time zone NOT NULL,
    dead_at timestamp with time zone DEFAULT now() NOT NULL,
    resolved_at timestamp with time zone,
    resolution text,
    CONSTRAINT dead_letter_cause_check CHECK ((cause = ANY (ARRAY['rejected'::text, 'gone'::text, 'exhausted'::text, 'expired'::text, 'blocked'::text, 'endpoint_disabled'::text]))),
    CONSTRAINT dead_letter_resolution_check CHECK ((resolution = ANY (ARRAY['replayed'::text, 'discarded'::text])))
)
PARTITION BY RANGE (delivery_id);

CREATE TABLE postrider.endpoint (
    id uuid NOT NULL,
    outside_id text NOT NULL COLLATE pg_catalog."C",
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    bucket integer NOT NULL,
    delivery_tail text NOT NULL COLLATE pg_catalog."C",
    url text NOT NULL,
    description text,
    status text DEFAULT 'active'::text NOT NULL,
    status_reason text,
    status_since timestamp with time zone DEFAULT now() NOT NULL,
    max_attempts integer DEFAULT 8 NOT NULL,
    timeout_ms integer DEFAULT 10000 NOT NULL,
    give_up_seconds integer DEFAULT 259200 NOT NULL,
    max_in_flight integer DEFAULT 10 NOT NULL,
    rate_per_second double precision,
    ordering text DEFAULT 'none'::text NOT NULL,
    retry_schedule jsonb,
    on_rejected text DEFAULT 'dead_letter'::text NOT NULL,
    signature text DEFAULT 'standard'::text NOT NULL,
    headers_sealed bytea,
    metadata jsonb,
    failing_since timestamp with time zone,
    last_success_at timestamp with time zone,
    last_failure_at timestamp with time zone,
    breaker text DEFAULT 'closed'::text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    revision integer DEFAULT 1 NOT NULL,
    cancel_before timestamp with time zone,
    CONSTRAINT endpoint_breaker_check CHECK ((breaker = ANY (ARRAY['closed'::text, 'open'::text]))),
    CONSTRAINT endpoint_on_rejected_check CHECK ((on_rejected = ANY (ARRAY['dead_letter'::text, 'retry'::text, 'pause'::text]))),
    CONSTRAINT endpoint_ordering_check CHECK ((ordering = ANY (ARRAY['none'::text, 'strict'::text]))),
    CONSTRAINT endpoint_signature_check CHECK ((signature = ANY (ARRAY['standard'::text, 'standard-ed25519'::text, 'hex-v1'::text, 'sha256'::text]))),
    CONSTRAINT endpoint_status_check CHECK ((status = ANY (ARRAY['active'::text, 'paused'::text, 'disabled'::text, 'deleted'::text])))
);

CREATE TABLE postrider.endpoint_position (
    endpoint_id uuid NOT NULL,
    "position" bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE postrider.endpoint_secret (
    id uuid NOT NULL,
    endpoint_id uuid NOT NULL,
    sealed bytea NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone
);

CREATE TABLE postrider.event (
    id uuid NOT NULL,
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    outside_id text COLLATE pg_catalog."C",
    type text NOT NULL COLLATE pg_catalog."C",
    version text,
    subject text,
    traceparent text,
    body text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
)
PARTITION BY RANGE (id);
ALTER TABLE ONLY postrider.event ALTER COLUMN body SET COMPRESSION lz4;

CREATE TABLE postrider.event_key (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    event_id uuid NOT NULL,
    request_hash bytea NOT NULL,
    answer text NOT NULL,
    CONSTRAINT event_key_key_check CHECK ((octet_length(key) <= 255)),
    CONSTRAINT event_key_kind_check CHECK ((kind = ANY (ARRAY['id'::text, 'key'::text])))
);

CREATE TABLE postrider.fanout_task (
    event_id uuid NOT NULL,
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    type text NOT NULL COLLATE pg_catalog."C",
    version text,
    created_at timestamp with time zone NOT NULL,
    after_endpoint uuid
);

CREATE TABLE postrider.inbox (
    id uuid NOT NULL,
    source_id text NOT NULL COLLATE pg_catalog."C",
    provider_id text,
    partition_key text,
    bucket integer NOT NULL,
    headers json NOT NULL,
    body text NOT NULL,
    status text DEFAULT 'pending'::text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    last_error text,
    event_id text COLLATE pg_catalog."C",
    received_at timestamp with time zone DEFAULT now() NOT NULL,
    done_at timestamp with time zone,
    dead_at timestamp with time zone,
    dead_work text[],
    CONSTRAINT inbox_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'done'::text, 'dead'::text, 'discarded'::text])))
)
PARTITION BY RANGE (id);
ALTER TABLE ONLY postrider.inbox ALTER COLUMN body SET COMPRESSION lz4;

CREATE TABLE postrider.inbox_key (
    source_id text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    id uuid NOT NULL,
    CONSTRAINT inbox_key_key_check CHECK ((octet_length(key) <= 255))
);

CREATE TABLE postrider.inbox_queue (
    id uuid NOT NULL,
    work text NOT NULL COLLATE pg_catalog."C",
    bucket integer NOT NULL,
    source_id text NOT NULL COLLATE pg_catalog."C",
    partition_key text COLLATE pg_catalog."C",
    is_ordered boolean NOT NULL,
    "position" bigint NOT NULL,
    due_at timestamp with time zone NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    leased_by text,
    last_error text,
    CONSTRAINT inbox_queue_work_check CHECK ((work = ANY (ARRAY['consume'::text, 'forward'::text])))
)
WITH (vacuum_truncate=off, autovacuum_vacuum_threshold='5000', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_insert_threshold='-1', autovacuum_vacuum_cost_delay='0', autovacuum_analyze_threshold='50000');

ALTER TABLE postrider.inbox_queue ALTER COLUMN "position" ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME postrider.inbox_queue_position_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE postrider.migration (
    version integer NOT NULL,
    name text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL,
    postrider_version text NOT NULL
);

CREATE TABLE postrider.node (
    id uuid NOT NULL,
    slot integer NOT NULL,
    name text NOT NULL,
    version text NOT NULL,
    delivers boolean NOT NULL,
    alive boolean DEFAULT true NOT NULL,
    heartbeat bigint DEFAULT 0 NOT NULL,
    started_at timestamp with time zone DEFAULT now() NOT NULL,
    heartbeat_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT node_slot_check CHECK (((slot >= 0) AND (slot <= 8191)))
)
WITH (fillfactor='50');

CREATE TABLE postrider.outbox (
    id bigint NOT NULL,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    event_id uuid NOT NULL,
    outside_id text COLLATE pg_catalog."C",
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    type text NOT NULL COLLATE pg_catalog."C",
    data text NOT NULL,
    version text,
    occurred_at timestamp with time zone,
    subject text,
    traceparent text,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    last_error text,
    retry_at timestamp with time zone,
    set_aside_at timestamp with time zone,
    processed_at timestamp with time zone
)
WITH (vacuum_truncate=off, autovacuum_vacuum_threshold='5000', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_insert_threshold='-1', autovacuum_vacuum_cost_delay='0', autovacuum_analyze_threshold='50000');
ALTER TABLE ONLY postrider.outbox ALTER COLUMN data SET COMPRESSION lz4;

ALTER TABLE postrider.outbox ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME postrider.outbox_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE postrider.outbox_relay (
    singleton boolean DEFAULT true NOT NULL,
    owner text,
    backend_pid integer,
    beat bigint DEFAULT 0 NOT NULL,
    since timestamp with time zone,
    beat_at timestamp with time zone,
    CONSTRAINT outbox_relay_singleton_check CHECK (singleton)
)
WITH (fillfactor='50');

CREATE TABLE postrider.outbox_setting (
    singleton boolean DEFAULT true NOT NULL,
    data_bytes_max integer DEFAULT 262144 NOT NULL,
    CONSTRAINT outbox_setting_singleton_check CHECK (singleton)
);

CREATE TABLE postrider.outbox_source (
    id text NOT NULL COLLATE pg_catalog."C",
    shown_url text NOT NULL,
    database_url_sealed bytea NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE postrider.pause_span (
    id bigint NOT NULL,
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    endpoint_id uuid,
    since timestamp with time zone DEFAULT now() NOT NULL,
    until timestamp with time zone
);

ALTER TABLE postrider.pause_span ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME postrider.pause_span_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE postrider.publish_log (
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    node_id uuid NOT NULL,
    first_id uuid NOT NULL,
    last_id uuid NOT NULL,
    buckets integer[] NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
)
WITH (autovacuum_vacuum_threshold='5000', autovacuum_vacuum_scale_factor='0');

CREATE TABLE postrider.queue (
    bucket integer NOT NULL,
    id uuid NOT NULL,
    event_id uuid NOT NULL,
    endpoint_id uuid NOT NULL,
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    retry boolean DEFAULT false NOT NULL,
    "position" bigint DEFAULT 0 NOT NULL,
    due_at timestamp with time zone NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    replay_id uuid
)
WITH (vacuum_truncate=off, autovacuum_vacuum_threshold='5000', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_insert_threshold='-1', autovacuum_vacuum_cost_delay='0', autovacuum_analyze_threshold='50000');

CREATE TABLE postrider.registry_version (
    singleton boolean DEFAULT true NOT NULL,
    version bigint DEFAULT 0 NOT NULL,
    CONSTRAINT registry_version_singleton_check CHECK (singleton)
);

CREATE TABLE postrider.setting (
    name text NOT NULL,
    value text NOT NULL
);

CREATE TABLE postrider.source (
    id text NOT NULL COLLATE pg_catalog."C",
    provider text NOT NULL,
    description text,
    signature jsonb,
    tolerance_seconds integer DEFAULT 300 NOT NULL,
    idempotency_key text,
    partition_key text,
    ordering text DEFAULT 'none'::text NOT NULL,
    headers text[] DEFAULT '{}'::text[] NOT NULL,
    body_bytes_max integer DEFAULT 1048576 NOT NULL,
    consume boolean DEFAULT true NOT NULL,
    forward_tenant_id text COLLATE pg_catalog."C",
    forward_type text,
    max_attempts integer DEFAULT 8 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT source_check CHECK (((forward_tenant_id IS NULL) = (forward_type IS NULL))),
    CONSTRAINT source_check1 CHECK ((consume OR (forward_tenant_id IS NOT NULL))),
    CONSTRAINT source_ordering_check CHECK ((ordering = ANY (ARRAY['none'::text, 'strict'::text]))),
    CONSTRAINT source_provider_check CHECK ((provider = ANY (ARRAY['standard'::text, 'svix'::text, 'stripe'::text, 'github'::text, 'shopify'::text, 'slack'::text, 'twilio'::text, 'hmac'::text])))
);

CREATE TABLE postrider.source_rejection (
    source_id text NOT NULL COLLATE pg_catalog."C",
    reason text NOT NULL COLLATE pg_catalog."C",
    count bigint NOT NULL,
    last_at timestamp with time zone NOT NULL,
    last_detail text NOT NULL
);

CREATE TABLE postrider.source_secret (
    id uuid NOT NULL,
    source_id text NOT NULL COLLATE pg_catalog."C",
    sealed bytea NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone
);

CREATE TABLE postrider.subscription (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    pattern text NOT NULL COLLATE pg_catalog."C",
    endpoint_id uuid NOT NULL,
    enabled boolean DEFAULT true NOT NULL,
    versions text[],
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE postrider.tenant (
    id text NOT NULL COLLATE pg_catalog."C",
    name text,
    status text DEFAULT 'active'::text NOT NULL,
    status_reason text,
    status_since timestamp with time zone DEFAULT now() NOT NULL,
    max_in_flight integer,
    rate_per_second double precision,
    publish_rate_per_second double precision,
    payload_bytes_max integer,
    endpoints_max integer,
    contacts jsonb,
    metadata jsonb,
    endpoint_count integer DEFAULT 0 NOT NULL,
    strict_count integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    revision integer DEFAULT 1 NOT NULL,
    CONSTRAINT tenant_status_check CHECK ((status = ANY (ARRAY['active'::text, 'paused'::text, 'deleted'::text])))
);

CREATE TABLE postrider.tenant_revision (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    revision bigint NOT NULL
)
WITH (fillfactor='50');

CREATE VIEW postrider.webhook_outbox AS
 SELECT o.id,
    COALESCE(o.outside_id, ('evt_'::text || replace((o.event_id)::text, '-'::text, ''::text))) AS event_id,
    o.tenant_id,
    o.type,
    o.version,
    o.subject,
    o.occurred_at,
    o.created_at,
        CASE
            WHEN (o.set_aside_at IS NOT NULL) THEN 'set_aside'::text
            WHEN (o.attempts > 0) THEN 'failed'::text
            ELSE 'fresh'::text
        END AS status,
    o.attempts,
    o.last_error,
    o.retry_at,
    o.set_aside_at
   FROM postrider.outbox o;

ALTER TABLE ONLY postrider.api_key
    ADD CONSTRAINT api_key_hash_key UNIQUE (hash);

ALTER TABLE ONLY postrider.api_key
    ADD CONSTRAINT api_key_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postrider.attempt
    ADD CONSTRAINT attempt_pkey PRIMARY KEY (delivery_id, attempt, bucket);

ALTER TABLE ONLY postrider.bucket_lease
    ADD CONSTRAINT bucket_lease_pkey PRIMARY KEY (bucket);

ALTER TABLE ONLY postrider.control_log
    ADD CONSTRAINT control_log_pkey PRIMARY KEY (version);

ALTER TABLE ONLY postrider.dead_letter
    ADD CONSTRAINT dead_letter_pkey PRIMARY KEY (delivery_id, bucket);

ALTER TABLE ONLY postrider.endpoint
    ADD CONSTRAINT endpoint_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postrider.endpoint_position
    ADD CONSTRAINT endpoint_position_pkey PRIMARY KEY (endpoint_id);

ALTER TABLE ONLY postrider.endpoint_secret
    ADD CONSTRAINT endpoint_secret_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postrider.event_key
    ADD CONSTRAINT event_key_pkey PRIMARY KEY (tenant_id, kind, key);

ALTER TABLE ONLY postrider.event
    ADD CONSTRAINT event_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postrider.fanout_task
    ADD CONSTRAINT fanout_task_pkey PRIMARY KEY (event_id);

ALTER TABLE ONLY postrider.inbox_key
    ADD CONSTRAINT inbox_key_pkey PRIMARY KEY (source_id, key);

ALTER TABLE ONLY postrider.inbox
    ADD CONSTRAINT inbox_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postrider.inbox_queue
    ADD CONSTRAINT inbox_queue_pkey PRIMARY KEY (id, work, bucket);

ALTER TABLE ONLY postrider.migration
    ADD CONSTRAINT migration_pkey PRIMARY KEY (version);

ALTER TABLE ONLY postrider.node
    ADD CONSTRAINT node_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postrider.node
    ADD CONSTRAINT node_slot_key UNIQUE (slot);

ALTER TABLE ONLY postrider.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postrider.outbox_relay
    ADD CONSTRAINT outbox_relay_pkey PRIMARY KEY (singleton);

ALTER TABLE ONLY postrider.outbox_setting
    ADD CONSTRAINT outbox_setting_pkey PRIMARY KEY (singleton);

ALTER TABLE ONLY postrider.outbox_source
    ADD CONSTRAINT outbox_source_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postrider.pause_span
    ADD CONSTRAINT pause_span_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postrider.queue
    ADD CONSTRAINT queue_pkey PRIMARY KEY (bucket, id);

ALTER TABLE ONLY postrider.registry_version
    ADD CONSTRAINT registry_version_pkey PRIMARY KEY (singleton);

ALTER TABLE ONLY postrider.setting
    ADD CONSTRAINT setting_pkey PRIMARY KEY (name);

ALTER TABLE ONLY postrider.source
    ADD CONSTRAINT source_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postrider.source_rejection
    ADD CONSTRAINT source_rejection_pkey PRIMARY KEY (source_id, reason);

ALTER TABLE ONLY postrider.source_secret
    ADD CONSTRAINT source_secret_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postrider.subscription
    ADD CONSTRAINT subscription_pkey PRIMARY KEY (tenant_id, pattern, endpoint_id);

ALTER TABLE ONLY postrider.tenant
    ADD CONSTRAINT tenant_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postrider.tenant_revision
    ADD CONSTRAINT tenant_revision_pkey PRIMARY KEY (tenant_id);

CREATE INDEX attempt_by_endpoint ON ONLY postrider.attempt USING btree (endpoint_id, delivery_id);

CREATE INDEX attempt_by_tenant ON ONLY postrider.attempt USING btree (tenant_id, delivery_id);

CREATE INDEX attempt_not_delivered ON ONLY postrider.attempt USING btree (tenant_id, outcome, delivery_id) WHERE (outcome <> 'delivered'::text);

CREATE INDEX dead_letter_by_endpoint ON ONLY postrider.dead_letter USING btree (endpoint_id, delivery_id);

CREATE INDEX dead_letter_by_tenant ON ONLY postrider.dead_letter USING btree (tenant_id, delivery_id);

CREATE INDEX dead_letter_unresolved ON ONLY postrider.dead_letter USING btree (tenant_id, cause, delivery_id) WHERE (resolved_at IS NULL);

CREATE INDEX endpoint_by_bucket ON postrider.endpoint USING btree (bucket);

CREATE UNIQUE INDEX endpoint_by_outside_id ON postrider.endpoint USING btree (tenant_id, outside_id);

CREATE UNIQUE INDEX endpoint_by_tail ON postrider.endpoint USING btree (tenant_id, delivery_tail);

CREATE INDEX endpoint_secret_by_endpoint ON postrider.endpoint_secret USING btree (endpoint_id);

CREATE INDEX event_by_tenant ON ONLY postrider.event USING btree (tenant_id, id);

CREATE INDEX inbox_by_source ON ONLY postrider.inbox USING btree (source_id, id);

CREATE INDEX inbox_dead ON ONLY postrider.inbox USING btree (source_id, id) WHERE (dead_at IS NOT NULL);

CREATE INDEX inbox_key_by_id ON postrider.inbox_key USING btree (id);

CREATE INDEX inbox_queue_due ON postrider.inbox_queue USING btree (source_id, work, is_ordered, due_at, "position");

CREATE INDEX inbox_queue_heads ON postrider.inbox_queue USING btree (source_id, work, bucket, partition_key, "position") WHERE is_ordered;

CREATE INDEX outbox_failed ON postrider.outbox USING btree (retry_at, id) WHERE ((attempts > 0) AND (set_aside_at IS NULL) AND (processed_at IS NULL));

CREATE INDEX outbox_fresh ON postrider.outbox USING btree (xid, id) WHERE ((attempts = 0) AND (processed_at IS NULL));

CREATE INDEX outbox_processed ON postrider.outbox USING btree (processed_at, id) WHERE (processed_at IS NOT NULL);

CREATE INDEX outbox_set_aside ON postrider.outbox USING btree (id) WHERE ((set_aside_at IS NOT NULL) AND (processed_at IS NULL));

CREATE INDEX pause_span_by_tenant ON postrider.pause_span USING btree (tenant_id, endpoint_id);

CREATE INDEX publish_log_by_xid ON postrider.publish_log USING btree (xid);

CREATE INDEX queue_lane ON postrider.queue USING btree (bucket, endpoint_id, retry, "position", due_at, id);

CREATE INDEX source_secret_by_source ON postrider.source_secret USING btree (source_id);

CREATE INDEX subscription_by_endpoint ON postrider.subscription USING btree (endpoint_id);

CREATE CONSTRAINT TRIGGER outbox_wakes_relay AFTER INSERT ON postrider.outbox DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION postrider.outbox_wake();

ALTER TABLE ONLY postrider.api_key
    ADD CONSTRAINT api_key_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES postrider.tenant(id);

ALTER TABLE ONLY postrider.endpoint_secret
    ADD CONSTRAINT endpoint_secret_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES postrider.endpoint(id);

ALTER TABLE ONLY postrider.endpoint
    ADD CONSTRAINT endpoint_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES postrider.tenant(id);

ALTER TABLE ONLY postrider.pause_span
    ADD CONSTRAINT pause_span_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES postrider.endpoint(id);

ALTER TABLE ONLY postrider.pause_span
    ADD CONSTRAINT pause_span_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES postrider.tenant(id);

ALTER TABLE ONLY postrider.source
    ADD CONSTRAINT source_forward_tenant_id_fkey FOREIGN KEY (forward_tenant_id) REFERENCES postrider.tenant(id);

ALTER TABLE ONLY postrider.source_rejection
    ADD CONSTRAINT source_rejection_source_id_fkey FOREIGN KEY (source_id) REFERENCES postrider.source(id) ON DELETE CASCADE;

ALTER TABLE ONLY postrider.source_secret
    ADD CONSTRAINT source_secret_source_id_fkey FOREIGN KEY (source_id) REFERENCES postrider.source(id) ON DELETE CASCADE;

ALTER TABLE ONLY postrider.subscription
    ADD CONSTRAINT subscription_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES postrider.endpoint(id);

ALTER TABLE ONLY postrider.subscription
    ADD CONSTRAINT subscription_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES postrider.tenant(id);
