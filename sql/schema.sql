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

CREATE FUNCTION postrider.attempts_since(endpoint uuid, since timestamp with time zone) RETURNS integer
    LANGUAGE plpgsql STABLE
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
begin
  return (
    select count(*)
    from (
      select a.started_at
      from attempt a
      where a.endpoint_id = endpoint and a.attempt <> 0
      order by a.delivery_id desc
      limit 100
    ) as newest
    where newest.started_at >= since
  );
end
$$;

CREATE FUNCTION postrider.collect_dead_letters(tenant text) RETURNS jsonb
    LANGUAGE sql
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
  with chosen as materialized (
    select e.id, e.public_id, e.url
    from endpoint e
    where e.id in (select u.endpoint_id from dead_letter_unnotified u where u.tenant_id = tenant)
      and (e.notified_at is null or e.notified_at <= now() - interval '1 hour')
    order by e.id
    for no key update skip locked
  ),
  marked as (
    update endpoint e set notified_at = now() from chosen c where e.id = c.id
  ),
  gone as (
    delete from dead_letter_unnotified u
    using chosen c
    where u.tenant_id = tenant
      and u.endpoint_id = c.id
    returning u.endpoint_id, u.cause, u.dead_letters, u.since
  ),
  by_endpoint as (
    select c.public_id, c.url, sum(g.dead_letters) as dead_letters, min(g.since) as since,
           jsonb_object_agg(g.cause, g.dead_letters) as causes
    from gone g
    join chosen c on c.id = g.endpoint_id
    group by c.public_id, c.url
  ),
  listed as (
    select *
    from by_endpoint
    order by dead_letters desc, public_id
    limit 20
  )
  select jsonb_build_object(
           'dead_letters', sum(b.dead_letters), 'since', min(b.since), 'endpoint_count', count(*),
           'endpoints', (select jsonb_agg(jsonb_build_object('endpoint_id', l.public_id, 'url', l.url,
                                                             'dead_letters', l.dead_letters, 'causes', l.causes)
                                          order by l.dead_letters desc, l.public_id)
                         from listed l))
  from by_endpoint b
  having count(*) > 0
$$;

CREATE FUNCTION postrider.contact_key(address text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
  select lower(address collate "C")
$$;

CREATE FUNCTION postrider.contacts_added(tenant text, added text[], is_operator boolean) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
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

CREATE FUNCTION postrider.contacts_to_notify(tenant text) RETURNS text[]
    LANGUAGE sql STABLE
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
  select array_agg(l.contact order by l.place)
  from tenant t
  cross join jsonb_array_elements_text(t.contacts) with ordinality as l (contact, place)
  left join contact c on c.tenant_id = t.id and c.address = contact_key(l.contact)
  where t.id = contacts_to_notify.tenant
    and t.status <> 'deleted'
    and (is_url_contact(l.contact) or (c.confirmed_at is not null and c.unsubscribed_at is null))
$$;

CREATE FUNCTION postrider.count_new_dead_letters() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
begin
  insert into dead_letter_delta (tenant_id, endpoint_id, cause, unresolved)
  select tenant_id, endpoint_id, cause, count(*)
  from fresh
  where resolved_at is null
  group by tenant_id, endpoint_id, cause;
  return null;
end
$$;

CREATE FUNCTION postrider.count_resolved_dead_letters() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
begin
  insert into dead_letter_delta (tenant_id, endpoint_id, cause, unresolved)
  select tenant_id, endpoint_id, cause, sum(change)
  from (
    select tenant_id, endpoint_id, cause, 1 as change from fresh where resolved_at is null
    union all
    select tenant_id, endpoint_id, cause, -1 from stale where resolved_at is null
  ) as changes
  group by tenant_id, endpoint_id, cause
  having sum(change) <> 0;
  return null;
end
$$;

CREATE FUNCTION postrider.create_partition(parent text, day date) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
declare
  partition text := parent || '_' || to_char(day, 'YYYYMMDD');
  days text := case parent when 'inbox' then 'inbox' else parent || '_day' end;
  range_column text := case when parent in ('event', 'inbox') then 'id' else 'delivery_id' end;
  low uuid := postrider.id_floor(day::timestamp at time zone 'UTC');
  high uuid := postrider.id_floor((day + 1)::timestamp at time zone 'UTC');
begin
  if to_regclass('postrider.' || partition) is not null then
    return false;
  end if;
  execute format('create table postrider.%I (like postrider.%I including all)', partition, days);
  if parent = 'inbox' then
    -- Leave room in each page: every row is updated once, when its message is done.
    execute format('alter table postrider.%I set (fillfactor = 85)', partition);
  end if;
  execute format('alter table postrider.%I add constraint by_day check (%I >= %L and %I < %L)',
                 partition, range_column, low, range_column, high);
  execute format('alter table postrider.%I attach partition postrider.%I for values from (%L) to (%L)',
                 days, partition, low, high);
  execute format('alter table postrider.%I drop constraint by_day', partition);
  return true;
end
$$;

CREATE FUNCTION postrider.create_partitions(back integer DEFAULT 7, ahead integer DEFAULT 14) RETURNS integer
    LANGUAGE sql
    AS $$
  select count(*)::integer
  from unnest(array['event', 'attempt', 'dead_letter', 'inbox']) as parent,
       generate_series(-back, ahead) as day
  where postrider.create_partition(parent, (now() at time zone 'UTC')::date + day)
$$;

CREATE FUNCTION postrider.create_replay(wanted_tenant text, wanted uuid, why text, who text, due timestamp with time zone, per_second_max integer DEFAULT NULL::integer, new_replay uuid DEFAULT NULL::uuid, new_delivery uuid DEFAULT NULL::uuid, on_behalf_of text DEFAULT 'operator'::text) RETURNS TABLE(outcome text, replay_id uuid, delivery_id uuid, tenant_id text)
    LANGUAGE plpgsql
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
  old record;
  target record;
  gone record;
  next_position bigint := 0;
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
    -- One at a time per requester, so that the count is right.
    insert into replay_requester (requested_by) values (who) on conflict (requested_by) do update set taken_at = now();
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
  -- After its retention an event is kept only while a row needs it, so only such a row can be replayed. The lock prevents
  -- that the dead letter is resolved meanwhile.
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

  replay_id := coalesce(new_replay, new_id());
  delivery_id := coalesce(new_delivery, new_id());
  outcome := 'created';
  tenant_id := old.tenant_id;
  insert into replay (id, tenant_id, kind, status, reason, requested_by, on_behalf_of, delivery_id, is_counted, matched,
                      queued, created_at, started_at, finished_at)
  values (create_replay.replay_id, old.tenant_id, 'delivery', 'completed', why, who, create_replay.on_behalf_of, wanted, true,
          1, 1, clock_timestamp(), now(), now());
  insert into replayed (event_id, endpoint_id, delivery_id, origin_id, replay_id)
  values (old.event_id, old.endpoint_id, create_replay.delivery_id, wanted, create_replay.replay_id);
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
    returning p.position into next_position;
  end if;
  -- give_up_seconds count from the time at which it may be sent.
  insert into queue (bucket, id, event_id, endpoint_id, tenant_id, position, due_at, created_at, replay_id)
  values (target.bucket, create_replay.delivery_id, old.event_id, old.endpoint_id, old.tenant_id, next_position,
          greatest(due, now()), greatest(due, now()), create_replay.replay_id);
  -- There is no handoff in memory: its owner fetches it.
  insert into publish_log (node_id, first_id, last_id, buckets)
  values ('00000000-0000-0000-0000-000000000000', create_replay.delivery_id, create_replay.delivery_id,
          array[target.bucket]);
  return next;
end
$$;

CREATE FUNCTION postrider.create_requested_replay() RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
declare
  wanted requested_replay;
  created record;
begin
  delete from requested_replay
  where id = (select r.id from requested_replay r order by r.id limit 1 for update skip locked)
  returning * into wanted;
  if not found then
    return false;
  end if;
  select m.outcome, m.tenant_id
  into created
  from create_replay(null, wanted.origin_id, wanted.reason, wanted.requested_by, wanted.due_at, null, wanted.replay_id,
                   wanted.delivery_id) as m;
  if created.outcome <> 'created' then
    perform write_audit('system', 'system', 'delivery.replay_dropped', created.tenant_id,
                        public_id_of('dlv', wanted.origin_id),
                        after => jsonb_build_object('delivery_id', public_id_of('dlv', wanted.delivery_id),
                                                    'replay_id', public_id_of('rpl', wanted.replay_id)),
                        reason => created.outcome);
  end if;
  return true;
end
$$;

CREATE FUNCTION postrider.give_up_at(since timestamp with time zone, give_up_seconds integer, paused tstzmultirange) RETURNS timestamp with time zone
    LANGUAGE sql STABLE
    AS $$
  select case when bool_or(upper_inf(counted.span)) then null
              else since + make_interval(secs => (give_up_seconds + coalesce(sum(counted.seconds), 0))::double precision) end
  from (
    select p.span, p.seconds,
           coalesce(sum(p.seconds) over (order by p.span rows between unbounded preceding and 1 preceding), 0) as seconds_before
    from (
      select span, extract(epoch from upper(span)) - extract(epoch from lower(span)) as seconds
      from unnest(paused * tstzmultirange(tstzrange(since, null))) as span
    ) p
  ) counted
  where extract(epoch from lower(counted.span)) - counted.seconds_before - give_up_seconds < extract(epoch from since)
$$;

CREATE FUNCTION postrider.is_allow_list(networks cidr[]) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    AS $$
  select cardinality(networks) <= 32
     and array_position(networks, null) is null
     and not networks && '{0.0.0.0/0,::/0}'
$$;

CREATE FUNCTION postrider.public_id_of(prefix text, id uuid) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
  select prefix || '_' || replace(id::text, '-', '')
$$;

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
    lookup_us integer,
    connect_us integer,
    tls_us integer,
    first_byte_us integer,
    total_us integer NOT NULL,
    send_us integer,
    url_version integer,
    bytes_sent integer,
    bytes_received integer,
    flags smallint DEFAULT 0 NOT NULL,
    content_type text,
    response_headers text,
    preview text,
    address text,
    next_attempt_at timestamp with time zone,
    node_id uuid NOT NULL,
    created_at timestamp with time zone NOT NULL,
    replay_id uuid,
    is_probe boolean DEFAULT false NOT NULL,
    probed_attempt integer,
    is_kept boolean DEFAULT false NOT NULL,
    CONSTRAINT attempt_outcome_check CHECK ((outcome = ANY (ARRAY['delivered'::text, 'retrying'::text, 'dead_letter'::text, 'canceled'::text])))
)
PARTITION BY LIST (is_kept);

CREATE TABLE postrider.brake_span (
    id bigint NOT NULL,
    since timestamp with time zone DEFAULT now() NOT NULL,
    until timestamp with time zone
);

CREATE TABLE postrider.brakes (
    singleton boolean DEFAULT true NOT NULL,
    is_paused boolean DEFAULT false NOT NULL,
    retry_rate_per_second double precision,
    drain_rate_per_second double precision,
    reason text,
    changed_by text,
    changed_at timestamp with time zone,
    CONSTRAINT brakes_drain_rate_per_second_check CHECK ((drain_rate_per_second > (0)::double precision)),
    CONSTRAINT brakes_retry_rate_per_second_check CHECK ((retry_rate_per_second > (0)::double precision)),
    CONSTRAINT brakes_singleton_check CHECK (singleton)
);

CREATE TABLE postrider.bucket_lease (
    bucket integer NOT NULL,
    owner uuid,
    epoch bigint DEFAULT 0 NOT NULL,
    since timestamp with time zone DEFAULT now() NOT NULL,
    served_until timestamp with time zone
)
WITH (fillfactor='50');

CREATE TABLE postrider.endpoint (
    id uuid NOT NULL,
    public_id text NOT NULL COLLATE pg_catalog."C",
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    bucket integer NOT NULL,
    delivery_tail text NOT NULL COLLATE pg_catalog."C",
    url text NOT NULL,
    url_version integer DEFAULT 1 NOT NULL,
    description text,
    status text DEFAULT 'active'::text NOT NULL,
    status_reason text,
    status_since timestamp with time zone DEFAULT now() NOT NULL,
    status_by text DEFAULT 'operator'::text NOT NULL,
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
    allow_networks cidr[] DEFAULT '{}'::cidr[] NOT NULL,
    metadata jsonb,
    failing_since timestamp with time zone,
    last_success_at timestamp with time zone,
    last_failure_at timestamp with time zone,
    breaker text DEFAULT 'closed'::text NOT NULL,
    breaker_since timestamp with time zone,
    next_probe_at timestamp with time zone,
    last_probe_at timestamp with time zone,
    last_probe_error text,
    held_reason text,
    held_since timestamp with time zone,
    failures integer DEFAULT 0 NOT NULL,
    reported_stage integer DEFAULT 0 NOT NULL,
    notified_stage integer DEFAULT 0 NOT NULL,
    notified_at timestamp with time zone,
    degraded_since timestamp with time zone,
    outage_ended_at timestamp with time zone,
    pause_reported_at timestamp with time zone,
    cancel_before timestamp with time zone,
    cancel_reason text,
    waiting_reported_at timestamp with time zone,
    revision integer DEFAULT 1 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT endpoint_allow_networks_check CHECK (postrider.is_allow_list(allow_networks)),
    CONSTRAINT endpoint_breaker_check CHECK ((breaker = ANY (ARRAY['closed'::text, 'open'::text]))),
    CONSTRAINT endpoint_on_rejected_check CHECK ((on_rejected = ANY (ARRAY['dead_letter'::text, 'retry'::text, 'pause'::text]))),
    CONSTRAINT endpoint_ordering_check CHECK ((ordering = ANY (ARRAY['none'::text, 'strict'::text]))),
    CONSTRAINT endpoint_signature_check CHECK ((signature = ANY (ARRAY['standard'::text, 'standard-ed25519'::text, 'hex-v1'::text, 'sha256'::text]))),
    CONSTRAINT endpoint_status_by_check CHECK ((status_by = ANY (ARRAY['customer'::text, 'operator'::text, 'postrider'::text]))),
    CONSTRAINT endpoint_status_check CHECK ((status = ANY (ARRAY['active'::text, 'paused'::text, 'disabled'::text, 'deleted'::text])))
);

CREATE TABLE postrider.lane_wait (
    endpoint_id uuid NOT NULL,
    is_retry boolean NOT NULL,
    bucket integer NOT NULL,
    epoch bigint NOT NULL,
    reason text NOT NULL,
    since timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT lane_wait_reason_check CHECK ((reason = ANY (ARRAY['rate'::text, 'in_flight_cap'::text, 'brake'::text])))
)
WITH (fillfactor='50');

CREATE TABLE postrider.pause_span (
    id bigint NOT NULL,
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    endpoint_id uuid,
    since timestamp with time zone DEFAULT now() NOT NULL,
    until timestamp with time zone
);

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
    probes integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    replay_id uuid
)
WITH (vacuum_truncate=off, autovacuum_vacuum_threshold='5000', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_insert_threshold='-1', autovacuum_vacuum_cost_delay='0', autovacuum_analyze_threshold='50000');

CREATE TABLE postrider.tenant (
    id text NOT NULL COLLATE pg_catalog."C",
    name text,
    status text DEFAULT 'active'::text NOT NULL,
    status_reason text,
    status_since timestamp with time zone DEFAULT now() NOT NULL,
    status_by text DEFAULT 'operator'::text NOT NULL,
    max_in_flight integer,
    rate_per_second double precision,
    publish_rate_per_second double precision,
    payload_bytes_max integer,
    endpoints_max integer,
    allow_networks cidr[] DEFAULT '{}'::cidr[] NOT NULL,
    contacts jsonb,
    metadata jsonb,
    endpoint_count integer DEFAULT 0 NOT NULL,
    strict_count integer DEFAULT 0 NOT NULL,
    revision integer DEFAULT 1 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT tenant_allow_networks_check CHECK (postrider.is_allow_list(allow_networks)),
    CONSTRAINT tenant_contacts_check CHECK ((jsonb_typeof(contacts) = 'array'::text)),
    CONSTRAINT tenant_id_check CHECK ((id ~ '^[A-Za-z0-9_-][A-Za-z0-9_.:@-]{0,63}$'::text)),
    CONSTRAINT tenant_status_by_check CHECK ((status_by = ANY (ARRAY['customer'::text, 'operator'::text, 'postrider'::text]))),
    CONSTRAINT tenant_status_check CHECK ((status = ANY (ARRAY['active'::text, 'paused'::text, 'deleted'::text])))
);

CREATE VIEW postrider.delivery_wait AS
 SELECT q.bucket,
    q.id,
        CASE
            WHEN b.is_paused THEN 'brake'::text
            WHEN (t.status = 'paused'::text) THEN 'tenant_paused'::text
            WHEN (p.status = 'paused'::text) THEN 'endpoint_paused'::text
            WHEN (p.held_since IS NOT NULL) THEN 'held'::text
            WHEN (q.due_at > now()) THEN 'schedule'::text
            WHEN ((p.ordering = 'strict'::text) AND (NOT q.retry) AND ((EXISTS ( SELECT
               FROM postrider.queue o
              WHERE ((o.bucket = q.bucket) AND (o.endpoint_id = q.endpoint_id) AND (NOT o.retry) AND (o."position" < q."position")))) OR (EXISTS ( SELECT
               FROM postrider.queue o
              WHERE ((o.bucket = q.bucket) AND (o.endpoint_id = q.endpoint_id) AND o.retry))))) THEN 'strict_order'::text
            WHEN (p.breaker = 'open'::text) THEN 'breaker'::text
            ELSE ( SELECT w.reason
               FROM (postrider.lane_wait w
                 JOIN postrider.bucket_lease l ON (((l.bucket = w.bucket) AND (l.epoch = w.epoch) AND (l.owner IS NOT NULL))))
              WHERE ((w.endpoint_id = q.endpoint_id) AND (w.is_retry = q.retry)))
        END AS waiting_for,
    postrider.give_up_at(q.created_at, p.give_up_seconds, ( SELECT range_agg(tstzrange(s.since, s.until)) AS range_agg
           FROM ( SELECT pause_span.since,
                    pause_span.until
                   FROM postrider.pause_span
                  WHERE ((pause_span.tenant_id = p.tenant_id) AND ((pause_span.endpoint_id = p.id) OR (pause_span.endpoint_id IS NULL)))
                UNION ALL
                 SELECT brake_span.since,
                    brake_span.until
                   FROM postrider.brake_span
                UNION ALL
                 SELECT p.held_since,
                    NULL::timestamp with time zone AS until
                  WHERE (p.held_since IS NOT NULL)) s
          WHERE ((s.until IS NULL) OR (s.until > s.since)))) AS give_up_at,
        CASE
            WHEN ((p.breaker = 'open'::text) AND (p.status = 'active'::text) AND (t.status = 'active'::text) AND (p.held_since IS NULL) AND (NOT b.is_paused)) THEN p.next_probe_at
            ELSE NULL::timestamp with time zone
        END AS next_probe_at
   FROM (((postrider.queue q
     JOIN postrider.endpoint p ON ((p.id = q.endpoint_id)))
     JOIN postrider.tenant t ON ((t.id = p.tenant_id)))
     CROSS JOIN postrider.brakes b);

CREATE TABLE postrider.event (
    id uuid NOT NULL,
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    public_id text COLLATE pg_catalog."C",
    type text NOT NULL COLLATE pg_catalog."C",
    version text,
    subject text,
    traceparent text,
    body text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    main_id uuid,
    is_kept boolean DEFAULT false NOT NULL,
    erased_at timestamp with time zone,
    CONSTRAINT event_form CHECK (((type <> ''::text) AND (octet_length(type) <= 128) AND (type !~ '[^A-Za-z0-9_.-]'::text) AND (public_id <> ''::text) AND (octet_length(public_id) <= 64) AND (public_id !~ '[^A-Za-z0-9_-]'::text) AND (octet_length(traceparent) = 55) AND (traceparent !~ '[^0-9a-f-]'::text)))
)
PARTITION BY LIST (is_kept);
ALTER TABLE ONLY postrider.event ALTER COLUMN body SET COMPRESSION lz4;

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

CREATE TABLE postrider.node_in_flight (
    node_id uuid NOT NULL,
    delivery_ids uuid[] NOT NULL,
    buckets integer[] NOT NULL,
    changed_at timestamp with time zone DEFAULT now() NOT NULL
)
WITH (fillfactor='50');

CREATE VIEW postrider.in_flight AS
 SELECT sent.id,
    sent.bucket,
    f.node_id
   FROM (((postrider.node_in_flight f
     JOIN postrider.node n ON (((n.id = f.node_id) AND n.alive)))
     CROSS JOIN LATERAL UNNEST(f.delivery_ids, f.buckets) sent(id, bucket))
     JOIN postrider.bucket_lease l ON (((l.bucket = sent.bucket) AND (l.owner = f.node_id))));

CREATE VIEW postrider.webhook_deliveries AS
 SELECT q.id,
    q.tenant_id,
    q.endpoint_id,
    q.event_id,
    e.type AS event_type,
    p.url,
        CASE
            WHEN (f.id IS NOT NULL) THEN 'processing'::text
            WHEN (q.attempts = 0) THEN 'pending'::text
            ELSE 'retrying'::text
        END AS status,
    q.attempts,
    p.max_attempts,
    q.due_at AS next_attempt_at,
    postrider.public_id_of('node'::text, l.owner) AS claimed_by,
    last.started_at AS last_attempt_at,
    last.status_code AS last_status_code,
    COALESCE(last.error_detail, last.error) AS last_error,
    NULL::timestamp with time zone AS delivered_at,
    q.created_at,
    q.replay_id,
    postrider.public_id_of('dlv'::text, q.id) AS delivery,
    p.public_id AS endpoint,
    COALESCE(e.public_id, postrider.public_id_of('evt'::text, q.event_id)) AS event,
    e.version AS payload_version,
        CASE
            WHEN (f.id IS NULL) THEN ( SELECT w.waiting_for
               FROM postrider.delivery_wait w
              WHERE ((w.bucket = q.bucket) AND (w.id = q.id)))
            ELSE NULL::text
        END AS waiting_for,
    ( SELECT w.give_up_at
           FROM postrider.delivery_wait w
          WHERE ((w.bucket = q.bucket) AND (w.id = q.id))) AS give_up_at,
    ( SELECT w.next_probe_at
           FROM postrider.delivery_wait w
          WHERE ((w.bucket = q.bucket) AND (w.id = q.id))) AS next_probe_at
   FROM (((((postrider.bucket_lease l
     JOIN postrider.queue q ON ((q.bucket = l.bucket)))
     LEFT JOIN postrider.in_flight f ON (((f.bucket = q.bucket) AND (f.id = q.id))))
     LEFT JOIN LATERAL ( SELECT min(e_1.type) AS type,
            min(e_1.version) AS version,
            min(e_1.public_id) AS public_id
           FROM postrider.event e_1
          WHERE (e_1.id = q.event_id)) e ON (true))
     LEFT JOIN postrider.endpoint p ON ((p.id = q.endpoint_id)))
     LEFT JOIN LATERAL ( SELECT a.started_at,
            a.status_code,
            a.error,
            a.error_detail
           FROM postrider.attempt a
          WHERE (a.delivery_id = q.id)
          ORDER BY a.started_at DESC
         LIMIT 1) last ON (true))
UNION ALL
 SELECT a.delivery_id AS id,
    a.tenant_id,
    a.endpoint_id,
    a.event_id,
    e.type AS event_type,
    p.url,
    a.outcome AS status,
        CASE
            WHEN (a.attempt > 0) THEN a.attempt
            ELSE ( SELECT max(b.attempt) AS max
               FROM postrider.attempt b
              WHERE (b.delivery_id = a.delivery_id))
        END AS attempts,
    p.max_attempts,
    NULL::timestamp with time zone AS next_attempt_at,
    NULL::text AS claimed_by,
    a.started_at AS last_attempt_at,
    a.status_code AS last_status_code,
    COALESCE(a.error_detail, a.error) AS last_error,
        CASE
            WHEN (a.outcome = 'delivered'::text) THEN (a.started_at + ((a.total_us)::double precision * '00:00:00.000001'::interval))
            ELSE NULL::timestamp with time zone
        END AS delivered_at,
    a.created_at,
    a.replay_id,
    postrider.public_id_of('dlv'::text, a.delivery_id) AS delivery,
    p.public_id AS endpoint,
    COALESCE(e.public_id, postrider.public_id_of('evt'::text, a.event_id)) AS event,
    e.version AS payload_version,
    NULL::text AS waiting_for,
    NULL::timestamp with time zone AS give_up_at,
    NULL::timestamp with time zone AS next_probe_at
   FROM ((postrider.attempt a
     LEFT JOIN LATERAL ( SELECT min(e_1.type) AS type,
            min(e_1.version) AS version,
            min(e_1.public_id) AS public_id
           FROM postrider.event e_1
          WHERE (e_1.id = a.event_id)) e ON (true))
     LEFT JOIN postrider.endpoint p ON ((p.id = a.endpoint_id)))
  WHERE (a.outcome <> 'retrying'::text);

CREATE FUNCTION postrider.deliveries_of(tenant text, event text) RETURNS SETOF postrider.webhook_deliveries
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
declare
  wanted uuid := event_id(tenant, event);
begin
  return query
  select d.*
  from webhook_deliveries d
  where d.id >= first_delivery_id(wanted)
    and d.id <= last_delivery_id(wanted)
    and d.event_id >= first_delivery_id(wanted)
    and d.event_id <= last_delivery_id(wanted)
    and d.tenant_id = deliveries_of.tenant
    and d.replay_id is null
  union all
  select d.*
  from webhook_deliveries d
  where d.event_id >= first_delivery_id(wanted)
    and d.event_id <= last_delivery_id(wanted)
    and d.tenant_id = deliveries_of.tenant
    and d.replay_id is not null;
end
$$;

CREATE FUNCTION postrider.delivery(delivery text) RETURNS SETOF postrider.webhook_deliveries
    LANGUAGE sql STABLE
    AS $$
  select d.*
  from postrider.webhook_deliveries d
  where d.id = postrider.delivery_id(delivery.delivery)
$$;

CREATE FUNCTION postrider.delivery_id(delivery text) RETURNS uuid
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
  select postrider.parse_public_id(delivery, 'dlv')
$$;

CREATE FUNCTION postrider.emit(tenant text, type text, data json, id text DEFAULT NULL::text, version text DEFAULT NULL::text, occurred_at timestamp with time zone DEFAULT NULL::timestamp with time zone, subject text DEFAULT NULL::text, traceparent text DEFAULT NULL::text, on_invalid text DEFAULT NULL::text) RETURNS text
    LANGUAGE sql
    AS $$
  select postrider.outbox_write(true, tenant, type, data::text, id, version, occurred_at, subject, traceparent, on_invalid)
$$;

CREATE FUNCTION postrider.emit(tenant text, type text, data jsonb, id text DEFAULT NULL::text, version text DEFAULT NULL::text, occurred_at timestamp with time zone DEFAULT NULL::timestamp with time zone, subject text DEFAULT NULL::text, traceparent text DEFAULT NULL::text, on_invalid text DEFAULT NULL::text) RETURNS text
    LANGUAGE sql
    AS $$
  select postrider.outbox_write(true, tenant, type, data::text, id, version, occurred_at, subject, traceparent, on_invalid)
$$;

CREATE FUNCTION postrider.emit(tenant text, type text, data text, id text DEFAULT NULL::text, version text DEFAULT NULL::text, occurred_at timestamp with time zone DEFAULT NULL::timestamp with time zone, subject text DEFAULT NULL::text, traceparent text DEFAULT NULL::text, on_invalid text DEFAULT NULL::text) RETURNS text
    LANGUAGE sql
    AS $$
  select postrider.outbox_write(true, tenant, type, data, id, version, occurred_at, subject, traceparent, on_invalid)
$$;

CREATE VIEW postrider.webhook_endpoints AS
 SELECT e.id,
    e.public_id AS endpoint,
    e.tenant_id,
    e.url,
    e.description,
    e.status,
    e.status_reason,
    e.status_since,
    e.status_by,
    e.held_reason,
    e.held_since,
        CASE
            WHEN (e.failing_since IS NULL) THEN 'healthy'::text
            WHEN ((e.failing_since < (now() - '60:00:00'::interval)) AND (tried.count >= 10)) THEN 'unhealthy'::text
            ELSE 'failing'::text
        END AS health,
    e.failing_since,
    e.last_success_at,
    e.last_failure_at,
    e.breaker,
    e.last_probe_at,
    e.last_probe_error,
    e.max_attempts,
    e.timeout_ms,
    e.give_up_seconds,
    e.max_in_flight,
    e.rate_per_second,
    e.ordering,
    e.retry_schedule,
    e.on_rejected,
    e.signature,
    e.metadata,
    e.created_at,
    e.updated_at
   FROM (postrider.endpoint e
     LEFT JOIN LATERAL ( SELECT count(*) AS count
           FROM ( SELECT a.started_at
                   FROM postrider.attempt a
                  WHERE ((a.endpoint_id = e.id) AND (a.attempt <> 0) AND (e.failing_since < (now() - '60:00:00'::interval)))
                  ORDER BY a.delivery_id DESC
                 LIMIT 100) newest
          WHERE (newest.started_at >= e.failing_since)) tried ON (true));

CREATE FUNCTION postrider.endpoint(endpoint text) RETURNS SETOF postrider.webhook_endpoints
    LANGUAGE sql STABLE
    AS $$
  select e.*
  from postrider.webhook_endpoints e
  where e.id = postrider.parse_public_id(endpoint.endpoint, 'ep')
     or e.endpoint = endpoint.endpoint
$$;

CREATE FUNCTION postrider.endpoint(tenant text, endpoint text) RETURNS SETOF postrider.webhook_endpoints
    LANGUAGE sql STABLE
    AS $$
  select e.*
  from postrider.webhook_endpoints e
  where e.id = postrider.endpoint_id(endpoint.tenant, endpoint.endpoint)
$$;

CREATE FUNCTION postrider.endpoint_id(endpoint text) RETURNS uuid
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
  select coalesce(postrider.parse_public_id(endpoint, 'ep'),
                  (select case when count(*) = 1 then (array_agg(e.id))[1] end
                   from postrider.endpoint e
                   where e.public_id = endpoint))
$$;

CREATE FUNCTION postrider.endpoint_id(tenant text, endpoint text) RETURNS uuid
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
  select e.id
  from postrider.endpoint e
  where e.tenant_id = tenant
    and e.public_id = endpoint
$$;

CREATE FUNCTION postrider.endpoints_for(tenant text, type text) RETURNS TABLE(endpoint_id uuid, endpoint text, url text, status text, pattern text, versions text[])
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
  select e.id, e.public_id, e.url, e.status, s.pattern, s.versions
  from postrider.subscription s
  join postrider.endpoint e on e.id = s.endpoint_id
  where s.tenant_id = tenant
    and s.enabled
    and e.status <> 'deleted'
    and (s.pattern = '*' or s.pattern = type
         or (s.pattern like '%.*' and starts_with(type, left(s.pattern, -1))))
  order by e.public_id, s.pattern
$$;

CREATE FUNCTION postrider.endpoints_to_degrade(below integer, attempts_min integer, at_most integer) RETURNS TABLE(endpoint_id uuid, is_degraded boolean, attempts integer, failed integer)
    LANGUAGE sql STABLE
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
  with clock as (
    select date_trunc('hour', now(), 'UTC') as hour,
           1 - extract(epoch from now() - date_trunc('hour', now(), 'UTC')) / 3600 as share_before
  ),
  recent as materialized (
    select r.endpoint_id,
           sum(r.exchanges * part.share) as attempts,
           sum(r.delivered * part.share) as delivered
    from clock
    join rollup r on r.hour >= clock.hour - interval '1 hour'
    cross join lateral (select case when r.hour < clock.hour then clock.share_before else 1 end as share) as part
    group by r.endpoint_id
  ),
  changed as (
    select e.id, true as is_degraded, r.attempts, r.delivered
    from recent r
    join endpoint e on e.id = r.endpoint_id
    join tenant t on t.id = e.tenant_id
    where r.attempts >= attempts_min
      and 100 * r.delivered < below * r.attempts
      and e.degraded_since is null
      and e.status = 'active'
      and t.status = 'active'
      and e.tenant_id <> 'postrider'
      and e.reported_stage = 0
      and (e.failing_since is null or e.failing_since > now() - interval '90 seconds')
      and (e.outage_ended_at is null or e.outage_ended_at <= now() - interval '1 hour')
    union all
    select e.id, false, r.attempts, r.delivered
    from endpoint e
    join recent r on r.endpoint_id = e.id
    where e.degraded_since is not null
      and e.status = 'active'
      and e.reported_stage = 0
      and r.attempts >= 1
      and 200 * r.delivered >= (100 + below) * r.attempts
  )
  select c.id, c.is_degraded, round(c.attempts)::integer, round(c.attempts - c.delivered)::integer
  from changed c
  order by c.id
  limit at_most
$$;

CREATE FUNCTION postrider.endpoints_to_report(span interval, first_after interval, first_failures integer, at_most integer) RETURNS TABLE(endpoint_id uuid, was integer, stage integer)
    LANGUAGE sql STABLE
    AS $$
  select e.id, e.reported_stage, next.stage
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
    select now() - e.failing_since - paused.time as time,
           100 * extract(epoch from now() - e.failing_since - paused.time) / extract(epoch from span) as percent
  ) as age
  cross join lateral (
    select case
             when e.status = 'disabled' then 100
             when e.failing_since is null then 0
             when t.status <> 'active' then null
             when e.reported_stage = 0 and e.degraded_since is null then
               case when age.percent >= 0.02 or age.time >= first_after then 1 end   -- not for short failures: after a minute and a half
             when e.reported_stage < 2 and age.time >= first_after and e.failures >= first_failures then 2
             when e.failures < 10 then null
             when e.reported_stage < 50 then case when age.percent >= 50 then 50 end
             when e.reported_stage < 70 then case when age.percent >= 70 then 70 end
             when e.reported_stage < 90 then case when age.percent >= 90 then 90 end
             when e.reported_stage < 100 then case when age.percent >= 100 then 100 end
           end as stage
  ) as next
  where ((e.status = 'active' and (e.failing_since is not null or e.reported_stage > 0))
         or (e.status = 'disabled' and e.reported_stage < 100))
    and e.tenant_id <> 'postrider'
    and next.stage is not null
  order by e.id
  limit at_most
$$;

CREATE FUNCTION postrider.erase_payloads(events uuid[]) RETURNS TABLE(erased bigint, canceled bigint)
    LANGUAGE plpgsql
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
  ended record;
  buckets integer[];
begin
  canceled := 0;
  -- All versions of each event.
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
  -- Those of the tenants' endpoints, whatever their status: the rows of a deleted endpoint are still being removed.
  buckets := array(select distinct p.bucket
                   from endpoint p
                   where p.tenant_id in (select e.tenant_id
                                         from event e
                                         where e.id = any (events)
                                           and e.id >= (select min(i::text)::uuid from unnest(events) as i)
                                           and e.id <= (select max(i::text)::uuid from unnest(events) as i)));
  for ended in
    with wanted as (
      select b.bucket, q.id
      from unnest(events) as i (event_id)
      cross join unnest(buckets) as b (bucket)
      join queue q on q.bucket = b.bucket
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
    perform record_change('cancel', ended.tenant_id, ended.endpoint_id, ended.delivery_id);
  end loop;
  return next;
end
$$;

CREATE VIEW postrider.webhook_events AS
 SELECT e.id,
    COALESCE(e.public_id, postrider.public_id_of('evt'::text, e.id)) AS event,
    e.tenant_id,
    e.type,
    e.version,
    e.subject,
    octet_length(e.body) AS body_bytes,
    e.created_at,
    e.type AS event_type,
    e.version AS payload_version
   FROM postrider.event e;

CREATE FUNCTION postrider.event(tenant text, event text) RETURNS SETOF postrider.webhook_events
    LANGUAGE sql STABLE
    AS $$
  select e.*
  from postrider.webhook_events e
  where e.id = postrider.event_id(event.tenant, event.event)
    and e.tenant_id = event.tenant
$$;

CREATE FUNCTION postrider.event_id(tenant text, event text) RETURNS uuid
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
  select coalesce((select k.event_id
                   from postrider.event_key k
                   where k.tenant_id = tenant
                     and k.kind = 'id'
                     and k.key = event),
                  postrider.parse_public_id(event, 'evt'))
$$;

CREATE FUNCTION postrider.find_endpoint(endpoint text) RETURNS uuid
    LANGUAGE plpgsql STABLE
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
declare
  ids uuid[];
  tenants text[];
begin
  select array_agg(e.id), array_agg(e.tenant_id order by e.tenant_id)
  into ids, tenants
  from endpoint e
  where (e.id = postrider.parse_public_id(find_endpoint.endpoint, 'ep') or e.public_id = find_endpoint.endpoint)
    and e.status <> 'deleted';
  if ids is null then
    raise exception 'endpoint % does not exist', endpoint using errcode = 'no_data_found';
  end if;
  if cardinality(ids) > 1 then
    raise exception 'endpoint % is ambiguous: % tenants have an endpoint with this ID', endpoint, cardinality(ids)
      using errcode = 'too_many_rows',
            detail = format('Tenants: %s%s.', array_to_string(tenants[:10], ', '),
                            case when cardinality(tenants) > 10 then ', …' else '' end),
            hint = format('Pass the tenant as the first argument: (%L, %L, ''reason'').', tenants[1], endpoint);
  end if;
  return ids[1];
end
$$;

CREATE FUNCTION postrider.find_endpoint(tenant text, endpoint text) RETURNS uuid
    LANGUAGE plpgsql STABLE
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
declare
  id uuid;
begin
  select e.id into id
  from endpoint e
  where e.tenant_id = tenant
    and e.public_id = find_endpoint.endpoint
    and e.status <> 'deleted';
  if not found then
    raise exception 'endpoint % of tenant % does not exist', endpoint, tenant using errcode = 'no_data_found';
  end if;
  return id;
end
$$;

CREATE FUNCTION postrider.first_delivery_id(event uuid) RETURNS uuid
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
  select (left(replace(event::text, '-', ''), 20) || '000000000000')::uuid
$$;

CREATE FUNCTION postrider.grant_consumer() RETURNS void
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION postrider.grant_outbox() RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

CREATE FUNCTION postrider.grant_support() RETURNS void
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION postrider.hold_lease(lease text, of_epoch bigint) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  perform from postrider.session_lease l where l.name = lease and l.epoch = of_epoch for key share;
  if not found then
    raise exception 'another session has taken the lease "%"', lease using errcode = 'PRL01';
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

CREATE FUNCTION postrider.inbox_candidates(of_work text, of_source text, at timestamp with time zone, wanted integer) RETURNS uuid[]
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $$
declare
  window_rows constant integer := 500;
  keys_max constant integer := 1000;
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
      where k.seen < keys_max
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
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $$
#variable_conflict use_column
declare
  bytes_max constant bigint := 16 << 20;  -- limits the memory of a consumer, or of the node that serves it
  taken uuid[];
  tries integer[];
begin
  if not exists (select from postrider.source s where s.id = inbox_claim.source) then
    raise exception 'source % does not exist', inbox_claim.source using errcode = 'no_data_found';
  end if;
  select array_agg(t.id), array_agg(t.attempts) into taken, tries
  from postrider.inbox_take('consume', inbox_claim.worker, inbox_claim.source, inbox_claim.max, inbox_claim.lease,
                            bytes_max) as t;
  if taken is null then
    return;
  end if;
  return query
  select postrider.public_id_of('msg', m.id), m.source_id, m.provider_id, m.partition_key, m.headers, m.body, t.attempts,
         m.received_at
  from unnest(taken, tries) as t (id, attempts)
  cross join lateral (
    select i.id, i.source_id, i.provider_id, i.partition_key, i.headers, i.body, i.received_at
    from postrider.inbox i
    where i.id = t.id
    offset 0
  ) as m
  cross join lateral (
    select w.position
    from postrider.inbox_queue w
    where w.id = t.id
      and w.work = 'consume'
    offset 0
  ) as q
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
    raise exception 'lease must be between 1 second and 1 day' using errcode = '22023';
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
  perform postrider.inbox_lock(array[of_id]);  -- before its work: it may have to be marked as dead
  if cardinality(postrider.inbox_lock_work(of_work, worker, array[of_id])) = 0 then
    return false;
  end if;
  update postrider.inbox_queue q
  set
    due_at = clock_timestamp() + greatest(coalesce(retry_in, postrider.inbox_backoff(q.attempts)), interval '0'),
    leased_by = null,
    last_error = left(inbox_fail.error, 4096)
  where q.id = of_id
    and q.work = of_work
  returning q.attempts, q.source_id into failed;
  if failed.attempts >= coalesce((select s.max_attempts from postrider.source s where s.id = failed.source_id), 8) then
    perform postrider.inbox_mark_dead(of_work, array[of_id], left(inbox_fail.error, 4096));
  end if;
  return true;
end
$$;

CREATE FUNCTION postrider.inbox_finish(of_work text, worker text, ids uuid[]) RETURNS integer
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $$
declare
  mine uuid[];
  finished uuid[];
  tries integer[];
begin
  perform postrider.inbox_lock(ids);
  mine := postrider.inbox_lock_work(of_work, worker, ids);
  with ended as (
    delete from postrider.inbox_queue q
    where q.id = any (mine)
      and q.work = of_work
    returning q.id, q.attempts
  )
  select array_agg(e.id order by e.id), array_agg(e.attempts order by e.id) into finished, tries
  from ended e;
  if finished is null then
    return 0;
  end if;
  -- No join, because it might scan a whole day, and no exists, because it might read the whole queue into a hash.
  update postrider.inbox m
  set
    status = case
      when m.dead_at is not null then 'dead'
      when (select true from postrider.inbox_queue other where other.id = m.id limit 1) then m.status
      else 'done'
    end,
    attempts = tries[width_bucket(m.id, finished)],  -- its position: they are sorted
    done_at = now(),
    event_id = case of_work when 'forward' then postrider.public_id_of('msg', m.id) else m.event_id end
  where m.id = any (finished)
    and m.id >= finished[1]
    and m.id <= finished[cardinality(finished)];
  return cardinality(finished);
end
$$;

CREATE FUNCTION postrider.inbox_first_bytes(ids uuid[], bytes_max bigint) RETURNS uuid[]
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $$
begin
  return array(
    select measured.id
    from (
      select w.id, w.place, b.bytes, sum(b.bytes) over (order by w.place) as bytes_so_far
      from unnest(ids) with ordinality as w (id, place)
      cross join lateral (
        select coalesce((select octet_length(m.body) from postrider.inbox m where m.id = w.id), 0) as bytes
      ) as b
    ) as measured
    where measured.bytes_so_far <= bytes_max
      or measured.place = 1
    order by measured.place
  );
end
$$;

CREATE FUNCTION postrider.inbox_forwards(worker text, of_source text, max integer, lease interval, bytes_max bigint) RETURNS TABLE(id uuid, partition_key text, headers text, body text, received_at timestamp with time zone)
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $$
#variable_conflict use_column
declare
  taken uuid[];
begin
  select array_agg(t.id) into taken
  from postrider.inbox_take('forward', worker, of_source, max, lease, bytes_max) as t;
  return query
  select m.id, m.partition_key, m.headers::text, m.body, m.received_at
  from unnest(taken) as t (id)
  cross join lateral (
    select i.id, i.partition_key, i.headers, i.body, i.received_at
    from postrider.inbox i
    where i.id = t.id
    offset 0
  ) as m
  cross join lateral (
    select w.position
    from postrider.inbox_queue w
    where w.id = t.id
      and w.work = 'forward'
    offset 0
  ) as q
  order by q.position;
end
$$;

CREATE FUNCTION postrider.inbox_held_by(day date) RETURNS text
    LANGUAGE plpgsql STABLE
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
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

CREATE FUNCTION postrider.inbox_lock(ids uuid[]) RETURNS void
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $$
begin
  perform
  from (select distinct i from unnest(ids) as i order by i) as wanted (id)
  cross join lateral (select from postrider.inbox m where m.id = wanted.id for update) as locked;
end
$$;

CREATE FUNCTION postrider.inbox_lock_free(ids uuid[]) RETURNS uuid[]
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $$
begin
  return array(
    select wanted.id
    from (select distinct i from unnest(ids) as i order by i) as wanted (id)
    left join lateral (select true as is_mine from postrider.inbox m where m.id = wanted.id for update skip locked)
      as locked on true
    where locked.is_mine
      or (select true from postrider.inbox m where m.id = wanted.id) is null
  );
end
$$;

CREATE FUNCTION postrider.inbox_lock_work(of_work text, worker text, ids uuid[]) RETURNS uuid[]
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $$
begin
  perform
  from postrider.inbox_queue q
  where q.id = any (ids)
    and q.work = of_work
    and q.leased_by = worker
    and q.due_at > clock_timestamp() + interval '1 second'
  order by q.id
  for update;
  return array(
    select q.id
    from postrider.inbox_queue q
    where q.id = any (ids)
      and q.work = of_work
      and q.leased_by = worker
    for update skip locked
  );
end
$$;

CREATE FUNCTION postrider.inbox_mark_dead(of_work text, ids uuid[], error text) RETURNS void
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $$
declare
  dead uuid[];
  tries integer[];
  errors text[];
begin
  perform postrider.inbox_lock(ids);
  with gone as (
    delete from postrider.inbox_queue q
    where q.id = any (ids)
      and q.work = of_work
    returning q.id, q.attempts, q.last_error
  )
  select array_agg(g.id order by g.id), array_agg(g.attempts order by g.id), array_agg(g.last_error order by g.id)
  into dead, tries, errors
  from gone g;
  -- No join, because it might scan a whole day. The IDs are sorted, so width_bucket finds the position of a message.
  update postrider.inbox m
  set
    status = 'dead',
    dead_at = now(),
    dead_work = array_append(m.dead_work, of_work),
    attempts = tries[width_bucket(m.id, dead)],
    last_error = coalesce(inbox_mark_dead.error, errors[width_bucket(m.id, dead)])
  where m.id = any (dead)
    and m.id >= dead[1]
    and m.id <= dead[cardinality(dead)];
end
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

CREATE FUNCTION postrider.inbox_return(of_work text, worker text, ids uuid[], error text, pause interval) RETURNS integer
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $$
declare
  returned int;
begin
  update postrider.inbox_queue q
  set
    due_at = clock_timestamp() + pause,
    leased_by = null,
    attempts = greatest(q.attempts - 1, 0),
    last_error = left(inbox_return.error, 4096)
  where q.id = any (ids)
    and q.work = of_work
    and q.leased_by = worker;
  get diagnostics returned = row_count;
  return returned;
end
$$;

CREATE FUNCTION postrider.inbox_take(of_work text, worker text, of_source text, wanted integer, lease interval, bytes_max bigint) RETURNS TABLE(id uuid, attempts integer)
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $$
#variable_conflict use_column
declare
  at constant timestamptz := clock_timestamp();  -- not now(): the caller's transaction may have begun long ago
  attempts_max constant integer := coalesce((select s.max_attempts from postrider.source s where s.id = of_source), 8);
  candidates uuid[];
  exhausted uuid[];
  ended uuid[];
begin
  if worker is null or worker = '' then
    raise exception 'worker is required' using errcode = '22023';
  end if;
  if lease is null or lease < interval '1 second' or lease > interval '1 day' then
    raise exception 'lease must be between 1 second and 1 day' using errcode = '22023';
  end if;
  loop
    candidates := postrider.inbox_candidates(of_work, of_source, at, least(greatest(coalesce(wanted, 1), 1), 1000));
    select coalesce(array_agg(q.id), '{}') into exhausted
    from postrider.inbox_queue q
    where q.id = any (candidates) and q.work = of_work and q.attempts >= attempts_max;
    exit when cardinality(exhausted) = 0;
    ended := postrider.inbox_lock_free(exhausted);
    exit when cardinality(ended) = 0;
    perform postrider.inbox_mark_dead(of_work, ended, 'the lease expired ' || attempts_max || ' times');
    exit when cardinality(exhausted) < cardinality(candidates);
  end loop;
  candidates := array(
    select c.id
    from unnest(candidates) with ordinality as c (id, place)
    where c.id <> all (exhausted)
    order by c.place
  );
  candidates := postrider.inbox_first_bytes(candidates, bytes_max);
  return query
  update postrider.inbox_queue q
  set
    due_at = at + lease,
    leased_by = worker,
    attempts = q.attempts + 1
  where q.id = any (candidates)
    and q.work = of_work
  returning q.id, q.attempts;
end
$$;

CREATE FUNCTION postrider.increment_revision() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  new.revision := old.revision + 1;
  return new;
end
$$;

CREATE FUNCTION postrider.is_url_contact(contact text) RETURNS boolean
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
  select position('://' in contact) > 0
$$;

CREATE FUNCTION postrider.keep_former_url() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
begin
  insert into former_url (endpoint_id, version, url) values (old.id, old.url_version, old.url);
  new.url_version := old.url_version + 1;
  return new;
end
$$;

CREATE FUNCTION postrider.last_delivery_id(event uuid) RETURNS uuid
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
  select (left(replace(event::text, '-', ''), 20) || 'ffffffffffff')::uuid
$$;

CREATE FUNCTION postrider.message_id(message text) RETURNS uuid
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
  select postrider.parse_public_id(message, 'msg')
$$;

CREATE FUNCTION postrider.needed_by_replays(parent text, source regclass, low uuid, high uuid, at_most integer) RETURNS SETOF uuid
    LANGUAGE plpgsql STABLE
    SET search_path TO 'postrider', 'pg_temp'
    AS $_$
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
$_$;

CREATE FUNCTION postrider.new_id(slot text DEFAULT 'bffe'::text) RETURNS uuid
    LANGUAGE sql
    AS $$
  select (lpad(to_hex(floor(extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0')
          || '7' || lpad(to_hex(nextval('postrider.id_sequence')), 3, '0')
          || slot
          || left(replace(gen_random_uuid()::text, '-', ''), 12))::uuid
$$;

CREATE FUNCTION postrider.next_mail_day() RETURNS timestamp with time zone
    LANGUAGE sql STABLE
    AS $$
  select ((now() at time zone 'UTC')::date + 1)::timestamp at time zone 'UTC'
$$;

CREATE FUNCTION postrider.note_dead_letters(tenant text, endpoint uuid, minute timestamp with time zone, causes jsonb) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
begin
  if causes - 'endpoint_disabled' = '{}' then
    return;
  end if;
  insert into dead_letter_notice as n (tenant_id, due_at)
  values (tenant, now())
  on conflict (tenant_id) do update
    set due_at = coalesce(n.due_at, greatest(now(), n.notified_at + interval '1 day'));
  insert into dead_letter_unnotified as u (tenant_id, endpoint_id, cause, dead_letters, since)
  select tenant, endpoint, c.cause, c.dead_letters::bigint, minute
  from jsonb_each_text(causes - 'endpoint_disabled') as c (cause, dead_letters)
  order by c.cause
  on conflict (tenant_id, endpoint_id, cause) do update
    set dead_letters = u.dead_letters + excluded.dead_letters,
        since = least(u.since, excluded.since);
end
$$;

CREATE FUNCTION postrider.outbox_data_error(data text) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  return case when data::json is null then 'data is required' end;
exception when others then
  return 'data is not JSON: ' || sqlerrm;
end
$$;

CREATE FUNCTION postrider.outbox_event_id(n bigint, at_ms bigint) RETURNS text
    LANGUAGE sql
    AS $$
  select pg_catalog.lpad(pg_catalog.to_hex((at_ms << 16) | 28672 | (n & 4095)), 16, '0')
    || pg_catalog.to_hex(40960 | ((n >> 12) & 8191))
    || pg_catalog.right(pg_catalog.gen_random_uuid()::text, 12)
$$;

CREATE FUNCTION postrider.outbox_keep_on_invalid() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  execute format('create or replace function postrider.outbox_on_invalid() returns text language sql immutable as %L',
                 format('select %L::text', new.on_invalid));
  return new;
end
$$;

CREATE FUNCTION postrider.outbox_location() RETURNS bigint
    LANGUAGE sql STABLE
    AS $$
  select pg_catalog.hashtext(pg_catalog.pg_relation_filepath('postrider.outbox_capture')
           || extract(epoch from pg_catalog.pg_postmaster_start_time()))::bigint & 4294967295
$$;

CREATE FUNCTION postrider.outbox_on_invalid() RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$select 'refuse'::text$$;

CREATE FUNCTION postrider.outbox_reject_invalid() RETURNS trigger
    LANGUAGE plpgsql
    AS $_$
declare
  wrong text;
begin
  if octet_length(new.tenant_id) <= 64 and new.tenant_id ~ '^[A-Za-z0-9_-][A-Za-z0-9_.:@-]*$'
     and new.tenant_id <> 'postrider'
     and octet_length(new.type) <= 128 and new.type ~ '^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$'
     and new.created_at >= '0001-01-01 00:00:00+00' and new.created_at < '10000-01-01 00:00:00+00'
     and (new.public_id, new.version, new.subject, new.traceparent, new.occurred_at) is null then
    return new;
  end if;
  if new.attempts > 0 or new.set_aside_at is not null then
    return new;
  end if;
  wrong := case
    when new.tenant_id is null or octet_length(new.tenant_id) > 64
         or new.tenant_id !~ '^[A-Za-z0-9_-][A-Za-z0-9_.:@-]*$' then
      'tenant_id must have 1 to 64 of the characters A-Z, a-z, 0-9, _, -, ., : and @, and must not begin with ., : or @'
    when new.tenant_id = 'postrider' then
      'the tenant postrider is reserved for operational events'
    when new.type is null or octet_length(new.type) > 128 or new.type !~ '^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$' then
      'type must be words of A-Z, a-z, 0-9, _ and - joined by dots, with at most 128 characters'
    when octet_length(new.public_id) > 64 or new.public_id !~ '^[A-Za-z0-9_-]+$' then
      'public_id must have 1 to 64 of the characters A-Z, a-z, 0-9, _ and -'
    when octet_length(new.version) not between 1 and 64 then
      'version must have 1 to 64 bytes'
    when octet_length(new.subject) not between 1 and 255 then
      'subject must have 1 to 255 bytes'
    when new.traceparent !~ '^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$' then
      'traceparent must have the form of W3C Trace Context, version 00'
    when new.occurred_at < '0001-01-01 00:00:00+00' or new.occurred_at >= '10000-01-01 00:00:00+00' then
      'occurred_at must be a time in the years 1 to 9999'
    when new.created_at < '0001-01-01 00:00:00+00' or new.created_at >= '10000-01-01 00:00:00+00' then
      'created_at must be a time in the years 1 to 9999'
  end;
  if wrong is null then
    return new;
  end if;
  raise exception 'postrider.outbox: %', wrong
    using errcode = 'check_violation', schema = 'postrider', table = 'outbox', constraint = 'outbox_event_form';
end
$_$;

CREATE FUNCTION postrider.outbox_set_aside(tenant text, type text, data text, id text, version text, occurred_at timestamp with time zone, subject text, traceparent text, error text) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
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
$_$;

CREATE FUNCTION postrider.outbox_set_mode(new_mode text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

CREATE FUNCTION postrider.outbox_versions_error(versions json, version text) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

CREATE FUNCTION postrider.outbox_write(is_emitted boolean, tenant text, type text, data text, id text, version text, occurred_at timestamp with time zone, subject text, traceparent text, on_invalid text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
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
$_$;

CREATE FUNCTION postrider.parse_public_id(public_id text, prefix text) RETURNS uuid
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $_$
  select case when public_id ~ ('^' || prefix || '_[0-9a-f]{32}$') then right(public_id, 32)::uuid end
$_$;

CREATE FUNCTION postrider.pause_endpoint(endpoint text, reason text) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
  select postrider.set_endpoint_status(postrider.find_endpoint(endpoint), 'paused', reason)
$$;

CREATE FUNCTION postrider.pause_endpoint(tenant text, endpoint text, reason text) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
  select postrider.set_endpoint_status(postrider.find_endpoint(tenant, endpoint), 'paused', reason)
$$;

CREATE FUNCTION postrider.publish(tenant text, type text, data json, id text DEFAULT NULL::text, version text DEFAULT NULL::text, occurred_at timestamp with time zone DEFAULT NULL::timestamp with time zone, subject text DEFAULT NULL::text, traceparent text DEFAULT NULL::text, on_invalid text DEFAULT NULL::text) RETURNS text
    LANGUAGE sql
    AS $$
  select postrider.outbox_write(false, tenant, type, data::text, id, version, occurred_at, subject, traceparent, on_invalid)
$$;

CREATE FUNCTION postrider.publish(tenant text, type text, data jsonb, id text DEFAULT NULL::text, version text DEFAULT NULL::text, occurred_at timestamp with time zone DEFAULT NULL::timestamp with time zone, subject text DEFAULT NULL::text, traceparent text DEFAULT NULL::text, on_invalid text DEFAULT NULL::text) RETURNS text
    LANGUAGE sql
    AS $$
  select postrider.outbox_write(false, tenant, type, data::text, id, version, occurred_at, subject, traceparent, on_invalid)
$$;

CREATE FUNCTION postrider.publish(tenant text, type text, data text, id text DEFAULT NULL::text, version text DEFAULT NULL::text, occurred_at timestamp with time zone DEFAULT NULL::timestamp with time zone, subject text DEFAULT NULL::text, traceparent text DEFAULT NULL::text, on_invalid text DEFAULT NULL::text) RETURNS text
    LANGUAGE sql
    AS $$
  select postrider.outbox_write(false, tenant, type, data, id, version, occurred_at, subject, traceparent, on_invalid)
$$;

CREATE FUNCTION postrider.publish_endpoint_event(e postrider.endpoint, kind text, numbers jsonb DEFAULT '{}'::jsonb) RETURNS void
    LANGUAGE sql
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
  select publish_operational_event(kind, (jsonb_build_object(
    'tenant_id', e.tenant_id, 'endpoint_id', e.public_id, 'status', e.status, 'status_reason', e.status_reason,
    'failing_since', e.failing_since, 'last_success_at', e.last_success_at) || numbers)::json)
$$;

CREATE FUNCTION postrider.publish_operational_event(kind text, data json) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
declare
  event_id uuid := new_id('bfff');
  shown_id text := public_id_of('evt', event_id);
begin
  insert into event (id, tenant_id, type, body)
  values (event_id, 'postrider', kind,
          format('{"id":"%s","type":"%s","tenant_id":"postrider","created_at":"%s","data":%s}', shown_id, kind,
                 to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), data));
  with target as materialized (
    select distinct on (e.id) e.id as endpoint_id, e.bucket, e.ordering = 'strict' as is_strict,
           (left(replace(event_id::text, '-', ''), 20) || e.delivery_tail)::uuid as id
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
    select t.bucket, t.id, event_id, t.endpoint_id, 'postrider', coalesce(c.position, 0), now(), now()
    from target t
    left join counter c on c.endpoint_id = t.endpoint_id
    order by t.bucket, t.id
    returning bucket, id
  )
  insert into publish_log (node_id, first_id, last_id, buckets)
  select '00000000-0000-0000-0000-000000000000',
         first_delivery_id(event_id),
         last_delivery_id(event_id),
         array_agg(distinct q.bucket)
  from queued q
  having count(*) > 0;
  return shown_id;
end
$$;

CREATE FUNCTION postrider.publish_versions(tenant text, type text, versions json, version text DEFAULT NULL::text, id text DEFAULT NULL::text, occurred_at timestamp with time zone DEFAULT NULL::timestamp with time zone, subject text DEFAULT NULL::text, traceparent text DEFAULT NULL::text, on_invalid text DEFAULT NULL::text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

CREATE FUNCTION postrider.put_notice(e postrider.endpoint, kind text, stage integer, cause text, attempts bigint, failed bigint) RETURNS void
    LANGUAGE sql
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
  insert into notice (endpoint_id, tenant_id, kind, stage, attempts, failed, failing_since, cause, contacts, due_at)
  select e.id, e.tenant_id, kind, stage, attempts, failed, e.failing_since, cause, wanted.contacts,
         greatest(now(), e.notified_at + interval '1 hour')
  from (select contacts_to_notify(e.tenant_id) as contacts) as wanted
  where wanted.contacts is not null
  on conflict (endpoint_id) do update
    set kind = excluded.kind, stage = excluded.stage, attempts = excluded.attempts, failed = excluded.failed,
        failing_since = excluded.failing_since, cause = excluded.cause, contacts = excluded.contacts,
        due_at = excluded.due_at, tries = 0, created_at = now()
$$;

CREATE FUNCTION postrider.record_change(kind text, tenant_id text, endpoint_id uuid DEFAULT NULL::uuid, delivery_id uuid DEFAULT NULL::uuid) RETURNS bigint
    LANGUAGE sql
    AS $$
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

CREATE FUNCTION postrider.record_disabled_span() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
begin
  if new.status = 'disabled' then
    insert into disabled_span (endpoint_id) values (new.id);
  else
    update disabled_span s set until = now() where s.endpoint_id = new.id and s.until is null;
  end if;
  return null;
end
$$;

CREATE FUNCTION postrider.record_requested_changes(at_most integer) RETURNS bigint
    LANGUAGE sql
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
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

CREATE FUNCTION postrider.record_subscription_span() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
begin
  insert into subscription_span (endpoint_id, pattern, enabled, versions, since)
  values (old.endpoint_id, old.pattern, old.enabled, old.versions, old.since);
  if tg_op = 'DELETE' then
    return old;
  end if;
  new.since := now();
  return new;
end
$$;

CREATE FUNCTION postrider.reject_view_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  raise exception 'the view postrider.% is read-only', tg_table_name
    using errcode = 'object_not_in_prerequisite_state', hint = tg_argv[0];
end
$$;

CREATE FUNCTION postrider.replay_delivery(delivery text, reason text, not_before timestamp with time zone DEFAULT now()) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'postrider', 'pg_temp'
    AS $_$
declare
  created record;
begin
  if delivery !~ '^dlv_[0-9a-f]{32}$' then
    raise exception '"%" is not a delivery ID', delivery
      using errcode = 'invalid_parameter_value', hint = 'A delivery ID is dlv_ and 32 hex digits.';
  end if;
  if coalesce(btrim(reason), '') = '' or octet_length(reason) > 1000 then
    raise exception 'reason is required (1 to 1,000 bytes; it is recorded in the audit log)' using errcode = 'invalid_parameter_value';
  end if;
  if not_before > now() + interval '30 days' then
    raise exception 'not_before must be at most 30 days from now' using errcode = 'invalid_parameter_value';
  end if;
  begin
    select m.outcome, m.replay_id, m.delivery_id, m.tenant_id
    into created
    from create_replay(null, substr(delivery, 5)::uuid, reason, 'sql:' || session_user, coalesce(not_before, now())) as m;
    raise exception using errcode = 'PRL02', message = 'rolled back';
  exception when sqlstate 'PRL02' then
    null;
  end;
  case created.outcome
    when 'created' then
      insert into requested_replay (origin_id, reason, requested_by, due_at, replay_id, delivery_id)
      values (substr(delivery, 5)::uuid, reason, 'sql:' || session_user, coalesce(not_before, now()), created.replay_id,
              created.delivery_id);
      perform write_audit('sql', session_user, 'delivery.replay', created.tenant_id, delivery,
                          after => jsonb_build_object('delivery_id', public_id_of('dlv', created.delivery_id),
                                                      'replay_id', public_id_of('rpl', created.replay_id)),
                          reason => reason);
      return public_id_of('dlv', created.delivery_id);
    when 'unknown_delivery' then
      raise exception 'delivery % does not exist', delivery using errcode = 'no_data_found';
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
$_$;

CREATE FUNCTION postrider.report_dead_letters(at_most integer) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
declare
  report record;
  events integer := 0;
begin
  for report in
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
      returning m.endpoint_id, m.minute, m.cause, m.dead_letters
    )
    select e.tenant_id, e.id, e.public_id, g.minute, sum(g.dead_letters) as dead_letters,
           jsonb_object_agg(g.cause, g.dead_letters) as causes
    from gone g
    join endpoint e on e.id = g.endpoint_id
    where e.tenant_id <> 'postrider'
    group by e.tenant_id, e.id, e.public_id, g.minute
    order by e.tenant_id, e.id, g.minute
  loop
    perform publish_operational_event('delivery.dead_lettered', json_build_object(
      'tenant_id', report.tenant_id, 'endpoint_id', report.public_id, 'minute', report.minute, 'dead_letters', report.dead_letters,
      'causes', report.causes));
    perform note_dead_letters(report.tenant_id, report.id, report.minute, report.causes);
    events := events + 1;
  end loop;
  return events;
end
$$;

CREATE FUNCTION postrider.report_degraded(which uuid, is_degraded boolean, attempts integer, failed integer) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
declare
  e endpoint;
  kind text := case when is_degraded then 'endpoint.degraded' else 'endpoint.recovered' end;
begin
  select * into e from endpoint x where x.id = which for no key update skip locked;
  if not found or e.status <> 'active' or e.reported_stage > 0 or (e.degraded_since is null) <> is_degraded then
    return null;
  end if;
  update endpoint x
  set degraded_since = case when is_degraded then now() end
  where x.id = which
  returning * into e;
  perform publish_endpoint_event(e, kind, jsonb_build_object('attempts', attempts, 'failed', failed));
  if is_degraded then
    perform put_notice(e, 'degraded', 1, null, attempts, failed);
  elsif e.notified_stage = 0 then
    delete from notice n where n.endpoint_id = which;
  else
    perform put_notice(e, 'recovered', 0, null, attempts, failed);
  end if;
  return kind;
end
$$;

CREATE FUNCTION postrider.report_endpoint(which uuid, was integer, stage integer, span interval) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
declare
  e endpoint;
  kind text := case when stage = 0 then 'endpoint.recovered' when stage <= 2 then 'endpoint.failing'
                    when stage = 100 then 'endpoint.disabled' else 'endpoint.unhealthy' end;
  disables boolean;
begin
  -- An endpoint that an open transaction has locked is reported later.
  select * into e from endpoint x where x.id = which for no key update skip locked;
  if not found or e.reported_stage <> was or e.status not in ('active', 'disabled')
     or (stage = 0 and e.failing_since is not null)
     or (stage between 1 and 90 and (e.failing_since is null or e.status <> 'active')) then
    return null;
  end if;
  disables := stage = 100 and e.status = 'active';
  update endpoint x
  set reported_stage = stage,
      degraded_since = case when stage between 1 and 90 then x.degraded_since end,
      outage_ended_at = case when stage = 0 and was >= 2 then now() else x.outage_ended_at end,
      status = case when disables then 'disabled' else x.status end,
      status_by = case when disables then 'postrider' else x.status_by end,
      status_reason = case when disables then format('every attempt failed since %s',
                             to_char(e.failing_since at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"'))
                           else x.status_reason end,
      status_since = case when disables then now() else x.status_since end,
      updated_at = case when disables then now() else x.updated_at end
  where x.id = which
  returning * into e;
  if stage <> 2 then
    perform publish_endpoint_event(e, kind, jsonb_build_object(
      'percent', case when stage between 50 and 100 then stage end,
      'disabled_at', case when stage between 50 and 90 then e.failing_since + span end));
  end if;
  if (stage = 0 and e.notified_stage = 0) or (stage = 100 and e.status_by = 'customer') then
    -- They have heard nothing of the failures, or disabled it themselves.
    delete from notice n where n.endpoint_id = which;
  elsif stage <> 1 then
    perform put_notice(e,
      case stage when 0 then 'recovered' when 2 then 'failing' when 100 then 'disabled' else 'warning' end, stage,
      case when stage <> 100 then null when disables then 'failing' when e.status_by = 'postrider' then 'gone'
           else 'operator' end,
      e.failures, e.failures);
  end if;
  if disables then
    perform record_change('endpoint', e.tenant_id, which);
  end if;
  return kind;
end
$$;

CREATE FUNCTION postrider.report_pauses(at_most integer) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
declare
  e endpoint;
  reported integer := 0;
begin
  for e in
    select *
    from endpoint x
    where x.status = 'paused'
      and x.status_by = 'postrider'
      and (x.pause_reported_at is null or x.pause_reported_at < x.status_since)
    order by x.id
    limit at_most
    for no key update skip locked
  loop
    update endpoint x set pause_reported_at = now() where x.id = e.id;
    if e.tenant_id <> 'postrider' then
      perform put_notice(e, 'paused', 2, null, e.failures, e.failures);
    end if;
    reported := reported + 1;
  end loop;
  return reported;
end
$$;

CREATE FUNCTION postrider.request_unrecorded_change() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
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

CREATE FUNCTION postrider.resume_endpoint(endpoint text, reason text) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
  select postrider.set_endpoint_status(postrider.find_endpoint(endpoint), 'active', reason)
$$;

CREATE FUNCTION postrider.resume_endpoint(tenant text, endpoint text, reason text) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
  select postrider.set_endpoint_status(postrider.find_endpoint(tenant, endpoint), 'active', reason)
$$;

CREATE FUNCTION postrider.set_endpoint_status(endpoint uuid, wanted text, reason text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
declare
  known record;
begin
  if coalesce(btrim(reason), '') = '' then
    raise exception 'reason is required (it is recorded in the audit log)' using errcode = 'invalid_parameter_value';
  end if;
  select e.id, e.tenant_id, e.public_id, e.status, e.status_reason, e.status_by
  into known
  from endpoint e
  where e.id = set_endpoint_status.endpoint
    and e.status <> 'deleted'
  for no key update;
  if not found then
    raise exception 'the endpoint was deleted' using errcode = 'no_data_found';
  end if;
  if wanted = 'paused' and known.status = 'disabled' then
    raise exception 'endpoint % is disabled; resume it first', known.public_id
      using errcode = 'object_not_in_prerequisite_state';
  end if;
  if known.status <> wanted or wanted = 'paused' then
    update endpoint e
    set status = wanted,
        status_by = 'operator',
        status_reason = reason,
        status_since = case when e.status = wanted then e.status_since else now() end,
        breaker = case when wanted = 'active' then 'closed' else e.breaker end,
        failing_since = case when wanted = 'active' and known.status = 'disabled' then null else e.failing_since end,
        updated_at = now()
    where e.id = known.id;
  end if;
  if known.status <> wanted then
    if wanted = 'paused' then
      insert into pause_span (tenant_id, endpoint_id) values (known.tenant_id, known.id);
    else
      update pause_span p set until = now()
      where p.tenant_id = known.tenant_id and p.endpoint_id = known.id and p.until is null;
    end if;
  end if;
  perform write_audit('sql', session_user, case wanted when 'paused' then 'endpoint.pause' else 'endpoint.resume' end,
                      known.tenant_id, known.public_id,
                      jsonb_build_object('status', known.status, 'status_reason', known.status_reason),
                      jsonb_build_object('status', wanted, 'status_reason', reason), reason);
end
$$;

CREATE FUNCTION postrider.take_confirmation(per_tenant integer, per_address integer) RETURNS TABLE(outcome text, tenant_id text, address text, recipient text, tries integer)
    LANGUAGE plpgsql
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
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
  -- The tenant's own budget first: a tenant that has used it up takes nothing from the mailbox's budget, which all share.
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

CREATE FUNCTION postrider.take_dead_letter_notice(busy text[], per_day integer) RETURNS TABLE(outcome text, tenant_id text, content text, contacts text[], tries integer)
    LANGUAGE plpgsql
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
  taken dead_letter_notice;
  next_at timestamptz := now() + interval '1 hour';
begin
  select * into taken
  from dead_letter_notice n
  where n.due_at <= now()
    and n.tenant_id <> all (busy)
  order by n.due_at
  limit 1
  for update skip locked;
  if not found then
    return;
  end if;
  tenant_id := taken.tenant_id;
  contacts := contacts_to_notify(taken.tenant_id);
  if taken.content is not null then
    select array_agg(c order by place) into contacts
    from unnest(taken.contacts) with ordinality as t (c, place)
    where c = any (contacts);
  end if;
  delete from dead_letter_unnotified u
  using endpoint e
  where u.tenant_id = taken.tenant_id
    and e.id = u.endpoint_id
    and (e.status = 'deleted' or contacts is null);
  if contacts is null or (taken.content is null
                          and not exists (select from dead_letter_unnotified u where u.tenant_id = taken.tenant_id)) then
    outcome := 'dropped';
    taken.content := null;
    next_at := null;
  elsif taken.content is not null then
    outcome := 'send';
  elsif not exists (select
                    from dead_letter_unnotified u
                    join endpoint e on e.id = u.endpoint_id
                    where u.tenant_id = taken.tenant_id
                      and (e.notified_at is null or e.notified_at <= now() - interval '1 hour')) then
    outcome := 'waiting';
    next_at := now() + interval '5 minutes';
  elsif not take_mail_budget('notices', taken.tenant_id, cardinality(contacts), per_day) then
    outcome := 'capped';
    next_at := next_mail_day();
  else
    taken.content := collect_dead_letters(taken.tenant_id);
    taken.notified_at := now();
    outcome := 'send';
    if taken.content is null then   -- locked meanwhile
      outcome := 'waiting';
      next_at := now() + interval '1 minute';
    end if;
  end if;
  tries := case when outcome = 'send' then taken.tries + 1 else 0 end;
  content := taken.content::text;
  update dead_letter_notice n
  set due_at = next_at, notified_at = taken.notified_at, content = taken.content, contacts = take_dead_letter_notice.contacts,
      tries = take_dead_letter_notice.tries
  where n.tenant_id = taken.tenant_id;
  return next;
end
$$;

CREATE FUNCTION postrider.take_mail_budget(scope text, key text, wanted integer, at_most integer) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
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

CREATE FUNCTION postrider.take_notice(busy text[], per_day integer) RETURNS TABLE(outcome text, endpoint_id uuid, tenant_id text, endpoint text, url text, kind text, stage integer, attempts integer, failed integer, failing_since timestamp with time zone, cause text, contacts text[], tries integer)
    LANGUAGE plpgsql
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
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
    and (n.tries > 0 or e.notified_at is null or e.notified_at <= now() - interval '1 hour')
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
  attempts := taken.attempts;
  failed := taken.failed;
  failing_since := taken.failing_since;
  cause := taken.cause;
  tries := taken.tries + 1;
  select e.public_id, e.url, e.status into target from endpoint e where e.id = taken.endpoint_id;
  endpoint := target.public_id;
  url := target.url;
  select array_agg(c order by place) into contacts
  from unnest(taken.contacts) with ordinality as t (c, place)
  where c = any (contacts_to_notify(taken.tenant_id));
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
    update endpoint e set notified_stage = taken.stage, notified_at = now() where e.id = taken.endpoint_id;
  end if;
  return next;
end
$$;

CREATE FUNCTION postrider.type_patterns(type text) RETURNS text[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
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

CREATE FUNCTION postrider.version_for(event uuid, main uuid, version text, wanted text[]) RETURNS uuid
    LANGUAGE sql STABLE
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
  select case
           when main is null then case when wanted is null or version = any (wanted) then event end
           when wanted is null then event
           else (select v.id
                 from event v
                 where v.id >= first_delivery_id(version_for.event)
                   and v.id <= last_delivery_id(version_for.event)
                   and v.version = any (wanted)
                 order by v.id < version_for.event, v.id
                 limit 1)
         end
$$;

CREATE FUNCTION postrider.waiting_reason(endpoint_status text, tenant_status text, held_reason text) RETURNS text
    LANGUAGE sql STABLE
    SET search_path TO 'postrider', 'pg_temp'
    AS $$
  select case
    when endpoint_status = 'paused' then 'the endpoint is paused'
    when tenant_status = 'paused' then 'the tenant is paused'
    when held_reason is not null then 'the deliveries cannot be signed'
    when (select is_paused from brakes) then 'all deliveries are paused'
  end
$$;

CREATE FUNCTION postrider.write_audit(actor_kind text, actor text, action text, tenant_id text, object text, before jsonb DEFAULT NULL::jsonb, after jsonb DEFAULT NULL::jsonb, reason text DEFAULT NULL::text, address text DEFAULT NULL::text, request_id text DEFAULT NULL::text, on_behalf_of text DEFAULT NULL::text, actor_name text DEFAULT NULL::text) RETURNS void
    LANGUAGE sql
    AS $$
  insert into postrider.audit (actor_kind, actor, actor_name, on_behalf_of, action, tenant_id, object, before, after, reason,
                               address, request_id)
  values (write_audit.actor_kind, write_audit.actor, write_audit.actor_name,
          coalesce(write_audit.on_behalf_of,
                   case write_audit.actor_kind when 'system' then 'postrider' else 'operator' end),
          write_audit.action, write_audit.tenant_id, write_audit.object, write_audit.before, write_audit.after,
          write_audit.reason, write_audit.address, write_audit.request_id)
$$;

CREATE TABLE postrider.api_key (
    id uuid NOT NULL,
    hash bytea NOT NULL,
    role text NOT NULL,
    is_token boolean DEFAULT false NOT NULL,
    is_read_only boolean DEFAULT false NOT NULL,
    tenant_id text COLLATE pg_catalog."C",
    payloads boolean DEFAULT true NOT NULL,
    description text,
    owner text,
    rate_per_second double precision,
    created_by text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    last_used_at timestamp with time zone,
    CONSTRAINT api_key_check CHECK (((role <> 'customer'::text) OR (tenant_id IS NOT NULL))),
    CONSTRAINT api_key_check1 CHECK (((NOT (is_token OR is_read_only)) OR (role = 'customer'::text))),
    CONSTRAINT api_key_role_check CHECK ((role = ANY (ARRAY['admin'::text, 'operator'::text, 'customer'::text, 'publisher'::text, 'reader'::text])))
);

CREATE TABLE postrider.attempt_day (
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
    lookup_us integer,
    connect_us integer,
    tls_us integer,
    first_byte_us integer,
    total_us integer NOT NULL,
    send_us integer,
    url_version integer,
    bytes_sent integer,
    bytes_received integer,
    flags smallint DEFAULT 0 NOT NULL,
    content_type text,
    response_headers text,
    preview text,
    address text,
    next_attempt_at timestamp with time zone,
    node_id uuid NOT NULL,
    created_at timestamp with time zone NOT NULL,
    replay_id uuid,
    is_probe boolean DEFAULT false NOT NULL,
    probed_attempt integer,
    is_kept boolean DEFAULT false NOT NULL,
    CONSTRAINT attempt_outcome_check CHECK ((outcome = ANY (ARRAY['delivered'::text, 'retrying'::text, 'dead_letter'::text, 'canceled'::text])))
)
PARTITION BY RANGE (delivery_id);

CREATE TABLE postrider.attempt_kept (
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
    lookup_us integer,
    connect_us integer,
    tls_us integer,
    first_byte_us integer,
    total_us integer NOT NULL,
    send_us integer,
    url_version integer,
    bytes_sent integer,
    bytes_received integer,
    flags smallint DEFAULT 0 NOT NULL,
    content_type text,
    response_headers text,
    preview text,
    address text,
    next_attempt_at timestamp with time zone,
    node_id uuid NOT NULL,
    created_at timestamp with time zone NOT NULL,
    replay_id uuid,
    is_probe boolean DEFAULT false NOT NULL,
    probed_attempt integer,
    is_kept boolean DEFAULT false NOT NULL,
    CONSTRAINT attempt_outcome_check CHECK ((outcome = ANY (ARRAY['delivered'::text, 'retrying'::text, 'dead_letter'::text, 'canceled'::text])))
);

CREATE TABLE postrider.audit (
    id bigint NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    actor_kind text NOT NULL,
    actor text NOT NULL COLLATE pg_catalog."C",
    actor_name text,
    on_behalf_of text DEFAULT 'operator'::text NOT NULL,
    action text NOT NULL COLLATE pg_catalog."C",
    tenant_id text COLLATE pg_catalog."C",
    object text NOT NULL COLLATE pg_catalog."C",
    before jsonb,
    after jsonb,
    reason text,
    address text,
    request_id text,
    CONSTRAINT audit_actor_kind_check CHECK ((actor_kind = ANY (ARRAY['key'::text, 'system'::text, 'sql'::text, 'console'::text, 'portal'::text, 'command'::text]))),
    CONSTRAINT audit_on_behalf_of_check CHECK ((on_behalf_of = ANY (ARRAY['customer'::text, 'operator'::text, 'postrider'::text])))
);

ALTER TABLE postrider.audit ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME postrider.audit_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE postrider.brake_span ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME postrider.brake_span_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE postrider.contact (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    address text NOT NULL COLLATE pg_catalog."C",
    confirmed_at timestamp with time zone,
    unsubscribed_at timestamp with time zone
);

CREATE TABLE postrider.contact_request (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    address text NOT NULL COLLATE pg_catalog."C",
    due_at timestamp with time zone DEFAULT now() NOT NULL,
    tries integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE postrider.contact_secret (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    sealed bytea NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE postrider.contact_token (
    hash bytea NOT NULL,
    purpose text NOT NULL,
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    address text NOT NULL COLLATE pg_catalog."C",
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT contact_token_purpose_check CHECK ((purpose = ANY (ARRAY['confirm'::text, 'unsubscribe'::text])))
);

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
    is_kept boolean DEFAULT false NOT NULL,
    CONSTRAINT dead_letter_cause_check CHECK ((cause = ANY (ARRAY['rejected'::text, 'gone'::text, 'exhausted'::text, 'expired'::text, 'blocked'::text, 'endpoint_disabled'::text]))),
    CONSTRAINT dead_letter_resolution_check CHECK ((resolution = ANY (ARRAY['replayed'::text, 'discarded'::text])))
)
PARTITION BY LIST (is_kept);

CREATE TABLE postrider.dead_letter_day (
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
    is_kept boolean DEFAULT false NOT NULL,
    CONSTRAINT dead_letter_cause_check CHECK ((cause = ANY (ARRAY['rejected'::text, 'gone'::text, 'exhausted'::text, 'expired'::text, 'blocked'::text, 'endpoint_disabled'::text]))),
    CONSTRAINT dead_letter_resolution_check CHECK ((resolution = ANY (ARRAY['replayed'::text, 'discarded'::text])))
)
PARTITION BY RANGE (delivery_id);

CREATE TABLE postrider.dead_letter_count (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    endpoint_id uuid NOT NULL,
    cause text NOT NULL COLLATE pg_catalog."C",
    unresolved bigint NOT NULL
);

CREATE TABLE postrider.dead_letter_delta (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    endpoint_id uuid NOT NULL,
    cause text NOT NULL COLLATE pg_catalog."C",
    unresolved bigint NOT NULL
);

CREATE TABLE postrider.dead_letter_kept (
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
    is_kept boolean DEFAULT false NOT NULL,
    CONSTRAINT dead_letter_cause_check CHECK ((cause = ANY (ARRAY['rejected'::text, 'gone'::text, 'exhausted'::text, 'expired'::text, 'blocked'::text, 'endpoint_disabled'::text]))),
    CONSTRAINT dead_letter_resolution_check CHECK ((resolution = ANY (ARRAY['replayed'::text, 'discarded'::text])))
);

CREATE TABLE postrider.dead_letter_minute (
    endpoint_id uuid NOT NULL,
    minute timestamp with time zone NOT NULL,
    cause text NOT NULL,
    dead_letters bigint NOT NULL
)
WITH (fillfactor='70');

CREATE TABLE postrider.dead_letter_notice (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    due_at timestamp with time zone,
    notified_at timestamp with time zone,
    content jsonb,
    contacts text[],
    tries integer DEFAULT 0 NOT NULL
);

CREATE TABLE postrider.dead_letter_unnotified (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    endpoint_id uuid NOT NULL,
    cause text NOT NULL,
    dead_letters bigint NOT NULL,
    since timestamp with time zone NOT NULL
);

CREATE TABLE postrider.disabled_span (
    id bigint NOT NULL,
    endpoint_id uuid NOT NULL,
    since timestamp with time zone DEFAULT now() NOT NULL,
    until timestamp with time zone
);

ALTER TABLE postrider.disabled_span ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME postrider.disabled_span_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
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

CREATE TABLE postrider.event_day (
    id uuid NOT NULL,
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    public_id text COLLATE pg_catalog."C",
    type text NOT NULL COLLATE pg_catalog."C",
    version text,
    subject text,
    traceparent text,
    body text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    main_id uuid,
    is_kept boolean DEFAULT false NOT NULL,
    erased_at timestamp with time zone,
    CONSTRAINT event_form CHECK (((type <> ''::text) AND (octet_length(type) <= 128) AND (type !~ '[^A-Za-z0-9_.-]'::text) AND (public_id <> ''::text) AND (octet_length(public_id) <= 64) AND (public_id !~ '[^A-Za-z0-9_-]'::text) AND (octet_length(traceparent) = 55) AND (traceparent !~ '[^0-9a-f-]'::text)))
)
PARTITION BY RANGE (id);
ALTER TABLE ONLY postrider.event_day ALTER COLUMN body SET COMPRESSION lz4;

CREATE TABLE postrider.event_kept (
    id uuid NOT NULL,
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    public_id text COLLATE pg_catalog."C",
    type text NOT NULL COLLATE pg_catalog."C",
    version text,
    subject text,
    traceparent text,
    body text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    main_id uuid,
    is_kept boolean DEFAULT false NOT NULL,
    erased_at timestamp with time zone,
    CONSTRAINT event_form CHECK (((type <> ''::text) AND (octet_length(type) <= 128) AND (type !~ '[^A-Za-z0-9_.-]'::text) AND (public_id <> ''::text) AND (octet_length(public_id) <= 64) AND (public_id !~ '[^A-Za-z0-9_-]'::text) AND (octet_length(traceparent) = 55) AND (traceparent !~ '[^0-9a-f-]'::text)))
);
ALTER TABLE ONLY postrider.event_kept ALTER COLUMN body SET COMPRESSION lz4;

CREATE TABLE postrider.event_key (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    event_id uuid NOT NULL,
    request_hash bytea NOT NULL,
    response text NOT NULL,
    CONSTRAINT event_key_key_check CHECK ((octet_length(key) <= 255)),
    CONSTRAINT event_key_kind_check CHECK ((kind = ANY (ARRAY['id'::text, 'key'::text])))
);

CREATE TABLE postrider.event_type (
    name text NOT NULL COLLATE pg_catalog."C",
    description text,
    validation text DEFAULT 'off'::text NOT NULL,
    revision integer DEFAULT 1 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT event_type_validation_check CHECK ((validation = ANY (ARRAY['off'::text, 'warn'::text, 'reject'::text])))
);

CREATE TABLE postrider.event_type_version (
    type_name text NOT NULL COLLATE pg_catalog."C",
    version text NOT NULL COLLATE pg_catalog."C",
    "position" integer NOT NULL,
    schema text,
    example text,
    deprecated_at timestamp with time zone
);

CREATE TABLE postrider.fanout_task (
    event_id uuid NOT NULL,
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    type text NOT NULL COLLATE pg_catalog."C",
    version text,
    created_at timestamp with time zone NOT NULL,
    after_endpoint uuid
);

CREATE TABLE postrider.former_url (
    endpoint_id uuid NOT NULL,
    version integer NOT NULL,
    url text NOT NULL,
    until timestamp with time zone DEFAULT now() NOT NULL
);

CREATE SEQUENCE postrider.id_sequence
    AS integer
    START WITH 0
    INCREMENT BY 1
    MINVALUE 0
    MAXVALUE 4095
    CACHE 1
    CYCLE;

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

CREATE TABLE postrider.inbox_content (
    source_id text NOT NULL COLLATE pg_catalog."C",
    digest bytea NOT NULL,
    topics text[] NOT NULL COLLATE pg_catalog."C",
    ids uuid[] NOT NULL,
    id uuid NOT NULL,
    CONSTRAINT inbox_content_digest_check CHECK ((octet_length(digest) = 32)),
    CONSTRAINT inbox_content_topics_check CHECK (((cardinality(topics) >= 1) AND (cardinality(topics) <= 8)))
);

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

CREATE TABLE postrider.kept_since (
    name text NOT NULL,
    since timestamp with time zone NOT NULL,
    below uuid NOT NULL
);

CREATE TABLE postrider.mail_budget (
    scope text NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    day date NOT NULL,
    used integer NOT NULL,
    CONSTRAINT mail_budget_scope_check CHECK ((scope = ANY (ARRAY['confirmations'::text, 'confirmations_to'::text, 'notices'::text])))
);

CREATE TABLE postrider.migration (
    version integer NOT NULL,
    name text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL,
    postrider_version text NOT NULL,
    oldest_binary integer NOT NULL
);

CREATE TABLE postrider.notice (
    endpoint_id uuid NOT NULL,
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL,
    stage integer NOT NULL,
    attempts integer,
    failed integer,
    failing_since timestamp with time zone,
    cause text,
    contacts text[] NOT NULL,
    due_at timestamp with time zone NOT NULL,
    tries integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT notice_cause_check CHECK ((cause = ANY (ARRAY['failing'::text, 'gone'::text, 'operator'::text]))),
    CONSTRAINT notice_kind_check CHECK ((kind = ANY (ARRAY['failing'::text, 'paused'::text, 'degraded'::text, 'warning'::text, 'disabled'::text, 'recovered'::text])))
);

CREATE TABLE postrider.outbox (
    id bigint NOT NULL,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    event_id uuid NOT NULL,
    public_id text COLLATE pg_catalog."C",
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
    processed_at timestamp with time zone,
    cut_from_bytes integer,
    versions text
)
WITH (vacuum_truncate=off, autovacuum_vacuum_threshold='5000', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_insert_threshold='-1', autovacuum_vacuum_cost_delay='0', autovacuum_analyze_threshold='50000');
ALTER TABLE ONLY postrider.outbox ALTER COLUMN data SET COMPRESSION lz4;

CREATE SEQUENCE postrider.outbox_capture
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE postrider.outbox_database (
    id text NOT NULL COLLATE pg_catalog."C",
    display_url text NOT NULL,
    database_url_sealed bytea NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE postrider.outbox ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME postrider.outbox_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE UNLOGGED SEQUENCE postrider.outbox_idle_until
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE postrider.outbox_setting (
    singleton boolean DEFAULT true NOT NULL,
    data_bytes_max integer DEFAULT 262144 NOT NULL,
    mode text DEFAULT 'table'::text NOT NULL,
    capture_bytes_max bigint DEFAULT 1073741824 NOT NULL,
    capture_key bytea DEFAULT decode(replace(((gen_random_uuid())::text || (gen_random_uuid())::text), '-'::text, ''::text), 'hex'::text) NOT NULL,
    on_invalid text DEFAULT 'refuse'::text NOT NULL,
    CONSTRAINT outbox_setting_capture_bytes_max_check CHECK ((capture_bytes_max > 0)),
    CONSTRAINT outbox_setting_mode_check CHECK ((mode = ANY (ARRAY['table'::text, 'cdc'::text]))),
    CONSTRAINT outbox_setting_on_invalid_check CHECK ((on_invalid = ANY (ARRAY['refuse'::text, 'set_aside'::text]))),
    CONSTRAINT outbox_setting_singleton_check CHECK (singleton)
);

CREATE TABLE postrider.outbox_slot (
    singleton boolean DEFAULT true NOT NULL,
    slot_created_at timestamp with time zone,
    commit_lsn pg_lsn DEFAULT '0/0'::pg_lsn NOT NULL,
    message_lsn pg_lsn DEFAULT '0/0'::pg_lsn NOT NULL,
    state text DEFAULT 'off'::text NOT NULL,
    reason text,
    state_since timestamp with time zone DEFAULT now() NOT NULL,
    lost_at timestamp with time zone,
    CONSTRAINT outbox_slot_singleton_check CHECK (singleton)
)
WITH (fillfactor='50');

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

CREATE TABLE postrider.refanout (
    since timestamp with time zone NOT NULL,
    until timestamp with time zone NOT NULL,
    tenant_id text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    origin text NOT NULL,
    after_id uuid,
    after_endpoint uuid,
    after_time timestamp with time zone,
    after_row bigint DEFAULT 0 NOT NULL,
    scanned bigint DEFAULT 0 NOT NULL,
    queued bigint DEFAULT 0 NOT NULL,
    started_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    finished_at timestamp with time zone
)
WITH (fillfactor='50');

CREATE TABLE postrider.registry_version (
    singleton boolean DEFAULT true NOT NULL,
    version bigint DEFAULT 0 NOT NULL,
    CONSTRAINT registry_version_singleton_check CHECK (singleton)
);

CREATE TABLE postrider.replay (
    id uuid NOT NULL,
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL,
    status text NOT NULL,
    reason text NOT NULL,
    requested_by text NOT NULL,
    on_behalf_of text DEFAULT 'operator'::text NOT NULL,
    delivery_id uuid,
    scope text,
    endpoint_id uuid,
    event_types text[],
    causes text[],
    delivery_ids uuid[],
    since timestamp with time zone,
    until timestamp with time zone,
    rate_per_second double precision,
    is_counted boolean DEFAULT false NOT NULL,
    matched bigint DEFAULT 0 NOT NULL,
    queued bigint DEFAULT 0 NOT NULL,
    after_id uuid,
    after_endpoint uuid,
    runner uuid,
    lease_until timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    CONSTRAINT replay_kind_check CHECK ((kind = ANY (ARRAY['delivery'::text, 'range'::text]))),
    CONSTRAINT replay_on_behalf_of_check CHECK ((on_behalf_of = ANY (ARRAY['customer'::text, 'operator'::text, 'postrider'::text]))),
    CONSTRAINT replay_scope_check CHECK ((scope = ANY (ARRAY['failed'::text, 'missing'::text, 'all'::text]))),
    CONSTRAINT replay_status_check CHECK ((status = ANY (ARRAY['queued'::text, 'running'::text, 'completed'::text, 'canceled'::text])))
)
WITH (fillfactor='50');

CREATE TABLE postrider.replay_progress (
    replay_id uuid NOT NULL,
    bucket integer NOT NULL,
    delivered bigint DEFAULT 0 NOT NULL,
    failed bigint DEFAULT 0 NOT NULL,
    canceled bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE postrider.replay_requester (
    requested_by text NOT NULL COLLATE pg_catalog."C",
    taken_at timestamp with time zone DEFAULT now() NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE postrider.replayed (
    event_id uuid NOT NULL,
    endpoint_id uuid NOT NULL,
    delivery_id uuid NOT NULL,
    origin_id uuid,
    replay_id uuid NOT NULL
);

CREATE TABLE postrider.requested_change (
    id bigint NOT NULL,
    kind text NOT NULL,
    tenant_id text COLLATE pg_catalog."C",
    endpoint_id uuid
);

ALTER TABLE postrider.requested_change ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME postrider.requested_change_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE postrider.requested_replay (
    id bigint NOT NULL,
    origin_id uuid NOT NULL,
    reason text NOT NULL,
    requested_by text NOT NULL,
    due_at timestamp with time zone NOT NULL,
    replay_id uuid NOT NULL,
    delivery_id uuid NOT NULL
);

ALTER TABLE postrider.requested_replay ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME postrider.requested_replay_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE VIEW postrider.response_reader AS
 SELECT (has_table_privilege(('postrider.attempt'::regclass)::oid, 'select'::text) OR (EXISTS ( SELECT
           FROM pg_roles r
          WHERE ((r.rolname = 'postrider_support_payloads'::name) AND pg_has_role(r.oid, 'usage'::text))))) AS sees_responses;

CREATE TABLE postrider.rollup (
    hour timestamp with time zone NOT NULL,
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    endpoint_id uuid NOT NULL,
    event_type text NOT NULL COLLATE pg_catalog."C",
    node_id uuid NOT NULL,
    delivered bigint DEFAULT 0 NOT NULL,
    delivered_attempts bigint DEFAULT 0 NOT NULL,
    first_attempt_successes bigint DEFAULT 0 NOT NULL,
    retried bigint DEFAULT 0 NOT NULL,
    dead_letters bigint DEFAULT 0 NOT NULL,
    dead_letter_attempts bigint DEFAULT 0 NOT NULL,
    canceled bigint DEFAULT 0 NOT NULL,
    exchanges bigint DEFAULT 0 NOT NULL,
    latency_us bigint DEFAULT 0 NOT NULL,
    latency_us_max bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='70');

CREATE TABLE postrider.rollup_closed (
    hour timestamp with time zone NOT NULL,
    closed_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE postrider.session (
    hash bytea NOT NULL,
    id uuid NOT NULL,
    kind text NOT NULL,
    key_id uuid NOT NULL,
    link_id uuid,
    tenant_id text COLLATE pg_catalog."C",
    is_read_only boolean DEFAULT false NOT NULL,
    payloads boolean DEFAULT true NOT NULL,
    is_preview boolean DEFAULT false NOT NULL,
    idle_seconds integer NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    last_seen_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    address text,
    CONSTRAINT session_kind_check CHECK ((kind = ANY (ARRAY['console'::text, 'portal'::text])))
);

CREATE TABLE postrider.session_lease (
    name text NOT NULL COLLATE pg_catalog."C",
    owner text,
    epoch bigint DEFAULT 0 NOT NULL,
    backend_pid integer,
    backend_start timestamp with time zone,
    heartbeat bigint DEFAULT 0 NOT NULL,
    since timestamp with time zone,
    heartbeat_at timestamp with time zone
)
WITH (fillfactor='50');

CREATE TABLE postrider.setting (
    name text NOT NULL,
    value text NOT NULL
);

CREATE TABLE postrider.sign_in_link (
    id uuid NOT NULL,
    hash bytea NOT NULL,
    kind text NOT NULL,
    key_id uuid NOT NULL,
    tenant_id text COLLATE pg_catalog."C",
    is_read_only boolean DEFAULT false NOT NULL,
    payloads boolean DEFAULT true NOT NULL,
    is_preview boolean DEFAULT false NOT NULL,
    session_seconds integer NOT NULL,
    label text,
    origin text,
    path text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone,
    CONSTRAINT sign_in_link_kind_check CHECK ((kind = ANY (ARRAY['console'::text, 'portal'::text])))
);

CREATE TABLE postrider.source (
    id text NOT NULL COLLATE pg_catalog."C",
    provider text NOT NULL,
    description text,
    signature jsonb,
    tolerance_seconds integer DEFAULT 300 NOT NULL,
    idempotency_key text,
    deduplicate text,
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
    CONSTRAINT source_deduplicate_check CHECK ((deduplicate = ANY (ARRAY['content'::text, 'id'::text]))),
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
    since timestamp with time zone DEFAULT now() NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE postrider.subscription_span (
    id bigint NOT NULL,
    endpoint_id uuid NOT NULL,
    pattern text NOT NULL COLLATE pg_catalog."C",
    enabled boolean NOT NULL,
    versions text[],
    since timestamp with time zone NOT NULL,
    until timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE postrider.subscription_span ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME postrider.subscription_span_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE postrider.tenant_last_change (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE postrider.unserved_span (
    id bigint NOT NULL,
    bucket integer NOT NULL,
    since timestamp with time zone NOT NULL,
    until timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE postrider.unserved_span ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME postrider.unserved_span_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE VIEW postrider.webhook_dead_letters AS
 SELECT d.delivery_id,
    d.tenant_id,
    d.endpoint_id,
    d.event_id,
    e.type AS event_type,
    p.url,
    d.cause,
    d.attempts,
    d.status_code,
    d.error,
    d.error_detail,
    d.created_at,
    d.dead_at,
    d.resolved_at,
    d.resolution,
    postrider.public_id_of('dlv'::text, d.delivery_id) AS delivery,
    p.public_id AS endpoint,
    COALESCE(e.public_id, postrider.public_id_of('evt'::text, d.event_id)) AS event
   FROM ((postrider.dead_letter d
     LEFT JOIN postrider.event e ON ((e.id = d.event_id)))
     LEFT JOIN postrider.endpoint p ON ((p.id = d.endpoint_id)));

CREATE VIEW postrider.webhook_delivery_attempts AS
 SELECT a.delivery_id,
    COALESCE(a.probed_attempt, a.attempt) AS attempt,
    a.tenant_id,
    a.endpoint_id,
    a.event_id,
    a.outcome,
    a.status_code,
    a.error,
    a.error_detail,
    a.started_at,
    a.lookup_us,
    a.connect_us,
    a.tls_us,
    a.first_byte_us,
    a.total_us,
        CASE
            WHEN ( SELECT response_reader.sees_responses
               FROM postrider.response_reader) THEN a.preview
            ELSE NULL::text
        END AS response_preview,
    a.address,
    a.next_attempt_at,
    a.node_id,
    a.created_at,
    a.replay_id,
    postrider.public_id_of('dlv'::text, a.delivery_id) AS delivery,
    p.public_id AS endpoint,
        CASE
            WHEN a.is_probe THEN 'probe'::text
            ELSE 'attempt'::text
        END AS kind,
        CASE
            WHEN (a.attempt < 0) THEN (- a.attempt)
            ELSE NULL::integer
        END AS probe,
    a.started_at AS attempted_at,
    round(((a.total_us)::numeric / 1000.0), 3) AS duration_ms,
    ( SELECT e.type
           FROM postrider.event e
          WHERE (e.id = a.event_id)) AS event_type,
        CASE
            WHEN (a.url_version = p.url_version) THEN p.url
            ELSE u.url
        END AS url,
        CASE
            WHEN (a.bytes_sent IS NOT NULL) THEN (((a.flags)::integer & 1) <> 0)
            ELSE NULL::boolean
        END AS connection_reused,
    (((a.flags)::integer & 2) <> 0) AS is_resent,
    a.bytes_sent,
    a.bytes_received,
    a.content_type,
        CASE
            WHEN ( SELECT response_reader.sees_responses
               FROM postrider.response_reader) THEN a.response_headers
            ELSE NULL::text
        END AS response_headers,
    (((a.flags)::integer & 4) <> 0) AS is_truncated,
    a.send_us
   FROM ((postrider.attempt a
     LEFT JOIN postrider.endpoint p ON ((p.id = a.endpoint_id)))
     LEFT JOIN postrider.former_url u ON (((u.endpoint_id = a.endpoint_id) AND (u.version = a.url_version))));

CREATE VIEW postrider.webhook_health AS
 SELECT r.hour,
    r.tenant_id,
    kind.status,
    (sum(kind.count))::bigint AS delivery_count,
    round((sum(kind.attempts) / NULLIF(sum(kind.count), (0)::numeric)), 3) AS avg_attempts,
    (sum(kind.first_attempt_successes))::bigint AS first_attempt_successes
   FROM (postrider.rollup r
     CROSS JOIN LATERAL ( VALUES ('delivered'::text,r.delivered,r.delivered_attempts,r.first_attempt_successes), ('dead_letter'::text,r.dead_letters,r.dead_letter_attempts,0), ('canceled'::text,r.canceled,0,0)) kind(status, count, attempts, first_attempt_successes))
  WHERE (kind.count > 0)
  GROUP BY r.hour, r.tenant_id, kind.status;

CREATE VIEW postrider.webhook_outbox AS
 SELECT o.id,
    COALESCE(o.public_id, ('evt_'::text || replace((o.event_id)::text, '-'::text, ''::text))) AS event_id,
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
    o.set_aside_at,
    o.type AS event_type,
    o.version AS payload_version,
    o.processed_at,
    o.retry_at AS next_attempt_at
   FROM postrider.outbox o;

CREATE VIEW postrider.webhook_replay_requests AS
 SELECT replay.id AS replay_id,
    replay.delivery_id,
    replay.requested_by,
    replay.reason,
    replay.created_at,
    replay.tenant_id,
    replay.kind,
    replay.status,
    replay.matched,
    replay.queued,
    postrider.public_id_of('rpl'::text, replay.id) AS replay,
    postrider.public_id_of('dlv'::text, replay.delivery_id) AS delivery
   FROM postrider.replay;

CREATE VIEW postrider.webhook_subscriptions AS
 SELECT s.endpoint_id,
    e.public_id AS endpoint,
    s.tenant_id,
    s.pattern AS event_type,
    s.enabled,
    s.versions,
    e.status,
    e.url,
    s.created_at
   FROM (postrider.subscription s
     JOIN postrider.endpoint e ON ((e.id = s.endpoint_id)));

ALTER TABLE ONLY postrider.attempt ATTACH PARTITION postrider.attempt_day FOR VALUES IN (false);

ALTER TABLE ONLY postrider.attempt ATTACH PARTITION postrider.attempt_kept FOR VALUES IN (true);

ALTER TABLE ONLY postrider.dead_letter ATTACH PARTITION postrider.dead_letter_day FOR VALUES IN (false);

ALTER TABLE ONLY postrider.dead_letter ATTACH PARTITION postrider.dead_letter_kept FOR VALUES IN (true);

ALTER TABLE ONLY postrider.event ATTACH PARTITION postrider.event_day FOR VALUES IN (false);

ALTER TABLE ONLY postrider.event ATTACH PARTITION postrider.event_kept FOR VALUES IN (true);

ALTER TABLE ONLY postrider.api_key
    ADD CONSTRAINT api_key_hash_key UNIQUE (hash);

ALTER TABLE ONLY postrider.api_key
    ADD CONSTRAINT api_key_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postrider.attempt_day
    ADD CONSTRAINT attempt_day_pkey PRIMARY KEY (delivery_id, attempt, bucket);

ALTER TABLE ONLY postrider.attempt_kept
    ADD CONSTRAINT attempt_kept_pkey PRIMARY KEY (delivery_id, attempt, bucket);

ALTER TABLE ONLY postrider.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postrider.brake_span
    ADD CONSTRAINT brake_span_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postrider.brakes
    ADD CONSTRAINT brakes_pkey PRIMARY KEY (singleton);

ALTER TABLE ONLY postrider.bucket_lease
    ADD CONSTRAINT bucket_lease_pkey PRIMARY KEY (bucket);

ALTER TABLE ONLY postrider.contact
    ADD CONSTRAINT contact_pkey PRIMARY KEY (tenant_id, address);

ALTER TABLE ONLY postrider.contact_request
    ADD CONSTRAINT contact_request_pkey PRIMARY KEY (tenant_id, address);

ALTER TABLE ONLY postrider.contact_secret
    ADD CONSTRAINT contact_secret_pkey PRIMARY KEY (tenant_id);

ALTER TABLE ONLY postrider.contact_token
    ADD CONSTRAINT contact_token_pkey PRIMARY KEY (hash);

ALTER TABLE ONLY postrider.control_log
    ADD CONSTRAINT control_log_pkey PRIMARY KEY (version);

ALTER TABLE ONLY postrider.dead_letter_count
    ADD CONSTRAINT dead_letter_count_pkey PRIMARY KEY (tenant_id, endpoint_id, cause);

ALTER TABLE ONLY postrider.dead_letter_day
    ADD CONSTRAINT dead_letter_day_pkey PRIMARY KEY (delivery_id, bucket);

ALTER TABLE ONLY postrider.dead_letter_kept
    ADD CONSTRAINT dead_letter_kept_pkey PRIMARY KEY (delivery_id, bucket);

ALTER TABLE ONLY postrider.dead_letter_minute
    ADD CONSTRAINT dead_letter_minute_pkey PRIMARY KEY (endpoint_id, minute, cause);

ALTER TABLE ONLY postrider.dead_letter_notice
    ADD CONSTRAINT dead_letter_notice_pkey PRIMARY KEY (tenant_id);

ALTER TABLE ONLY postrider.dead_letter_unnotified
    ADD CONSTRAINT dead_letter_unnotified_pkey PRIMARY KEY (tenant_id, endpoint_id, cause);

ALTER TABLE ONLY postrider.disabled_span
    ADD CONSTRAINT disabled_span_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postrider.endpoint
    ADD CONSTRAINT endpoint_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postrider.endpoint_position
    ADD CONSTRAINT endpoint_position_pkey PRIMARY KEY (endpoint_id);

ALTER TABLE ONLY postrider.endpoint_secret
    ADD CONSTRAINT endpoint_secret_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postrider.event_day
    ADD CONSTRAINT event_day_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postrider.event_kept
    ADD CONSTRAINT event_kept_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postrider.event_key
    ADD CONSTRAINT event_key_pkey PRIMARY KEY (tenant_id, kind, key);

ALTER TABLE ONLY postrider.event_type
    ADD CONSTRAINT event_type_pkey PRIMARY KEY (name);

ALTER TABLE ONLY postrider.event_type_version
    ADD CONSTRAINT event_type_version_pkey PRIMARY KEY (type_name, version);

ALTER TABLE ONLY postrider.fanout_task
    ADD CONSTRAINT fanout_task_pkey PRIMARY KEY (event_id);

ALTER TABLE ONLY postrider.former_url
    ADD CONSTRAINT former_url_pkey PRIMARY KEY (endpoint_id, version);

ALTER TABLE ONLY postrider.inbox_content
    ADD CONSTRAINT inbox_content_pkey PRIMARY KEY (source_id, digest);

ALTER TABLE ONLY postrider.inbox_key
    ADD CONSTRAINT inbox_key_pkey PRIMARY KEY (source_id, key);

ALTER TABLE ONLY postrider.inbox
    ADD CONSTRAINT inbox_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postrider.inbox_queue
    ADD CONSTRAINT inbox_queue_pkey PRIMARY KEY (id, work, bucket);

ALTER TABLE ONLY postrider.kept_since
    ADD CONSTRAINT kept_since_pkey PRIMARY KEY (name);

ALTER TABLE ONLY postrider.lane_wait
    ADD CONSTRAINT lane_wait_pkey PRIMARY KEY (endpoint_id, is_retry);

ALTER TABLE ONLY postrider.mail_budget
    ADD CONSTRAINT mail_budget_pkey PRIMARY KEY (scope, key, day);

ALTER TABLE ONLY postrider.migration
    ADD CONSTRAINT migration_pkey PRIMARY KEY (version);

ALTER TABLE ONLY postrider.node_in_flight
    ADD CONSTRAINT node_in_flight_pkey PRIMARY KEY (node_id);

ALTER TABLE ONLY postrider.node
    ADD CONSTRAINT node_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postrider.node
    ADD CONSTRAINT node_slot_key UNIQUE (slot);

ALTER TABLE ONLY postrider.notice
    ADD CONSTRAINT notice_pkey PRIMARY KEY (endpoint_id);

ALTER TABLE ONLY postrider.outbox_database
    ADD CONSTRAINT outbox_database_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postrider.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postrider.outbox_setting
    ADD CONSTRAINT outbox_setting_pkey PRIMARY KEY (singleton);

ALTER TABLE ONLY postrider.outbox_slot
    ADD CONSTRAINT outbox_slot_pkey PRIMARY KEY (singleton);

ALTER TABLE ONLY postrider.pause_span
    ADD CONSTRAINT pause_span_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postrider.queue
    ADD CONSTRAINT queue_pkey PRIMARY KEY (bucket, id);

ALTER TABLE ONLY postrider.refanout
    ADD CONSTRAINT refanout_pkey PRIMARY KEY (since, until, tenant_id, origin);

ALTER TABLE ONLY postrider.registry_version
    ADD CONSTRAINT registry_version_pkey PRIMARY KEY (singleton);

ALTER TABLE ONLY postrider.replay
    ADD CONSTRAINT replay_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postrider.replay_progress
    ADD CONSTRAINT replay_progress_pkey PRIMARY KEY (replay_id, bucket);

ALTER TABLE ONLY postrider.replay_requester
    ADD CONSTRAINT replay_requester_pkey PRIMARY KEY (requested_by);

ALTER TABLE ONLY postrider.replayed
    ADD CONSTRAINT replayed_pkey PRIMARY KEY (event_id, endpoint_id, delivery_id);

ALTER TABLE ONLY postrider.requested_change
    ADD CONSTRAINT requested_change_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postrider.requested_replay
    ADD CONSTRAINT requested_replay_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postrider.rollup_closed
    ADD CONSTRAINT rollup_closed_pkey PRIMARY KEY (hour);

ALTER TABLE ONLY postrider.rollup
    ADD CONSTRAINT rollup_pkey PRIMARY KEY (hour, tenant_id, endpoint_id, event_type, node_id);

ALTER TABLE ONLY postrider.session
    ADD CONSTRAINT session_id_key UNIQUE (id);

ALTER TABLE ONLY postrider.session_lease
    ADD CONSTRAINT session_lease_pkey PRIMARY KEY (name);

ALTER TABLE ONLY postrider.session
    ADD CONSTRAINT session_pkey PRIMARY KEY (hash);

ALTER TABLE ONLY postrider.setting
    ADD CONSTRAINT setting_pkey PRIMARY KEY (name);

ALTER TABLE ONLY postrider.sign_in_link
    ADD CONSTRAINT sign_in_link_hash_key UNIQUE (hash);

ALTER TABLE ONLY postrider.sign_in_link
    ADD CONSTRAINT sign_in_link_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postrider.source
    ADD CONSTRAINT source_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postrider.source_rejection
    ADD CONSTRAINT source_rejection_pkey PRIMARY KEY (source_id, reason);

ALTER TABLE ONLY postrider.source_secret
    ADD CONSTRAINT source_secret_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postrider.subscription
    ADD CONSTRAINT subscription_pkey PRIMARY KEY (tenant_id, pattern, endpoint_id);

ALTER TABLE ONLY postrider.subscription_span
    ADD CONSTRAINT subscription_span_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postrider.tenant_last_change
    ADD CONSTRAINT tenant_last_change_pkey PRIMARY KEY (tenant_id);

ALTER TABLE ONLY postrider.tenant
    ADD CONSTRAINT tenant_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postrider.unserved_span
    ADD CONSTRAINT unserved_span_pkey PRIMARY KEY (id);

CREATE INDEX api_key_by_tenant ON postrider.api_key USING btree (tenant_id, id);

CREATE INDEX attempt_by_endpoint ON ONLY postrider.attempt USING btree (endpoint_id, delivery_id);

CREATE INDEX attempt_by_tenant ON ONLY postrider.attempt USING btree (tenant_id, delivery_id);

CREATE INDEX attempt_by_time ON ONLY postrider.attempt USING brin (started_at, created_at) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX attempt_canceled ON ONLY postrider.attempt USING btree (delivery_id) WHERE (outcome = 'canceled'::text);

CREATE INDEX attempt_day_delivery_id_idx ON ONLY postrider.attempt_day USING btree (delivery_id) WHERE (outcome = 'canceled'::text);

CREATE INDEX attempt_day_endpoint_id_delivery_id_idx ON ONLY postrider.attempt_day USING btree (endpoint_id, delivery_id);

CREATE INDEX attempt_replayed ON ONLY postrider.attempt USING btree (event_id, delivery_id) WHERE (replay_id IS NOT NULL);

CREATE INDEX attempt_day_event_id_delivery_id_idx ON ONLY postrider.attempt_day USING btree (event_id, delivery_id) WHERE (replay_id IS NOT NULL);

CREATE INDEX attempt_day_started_at_created_at_idx ON ONLY postrider.attempt_day USING brin (started_at, created_at) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX attempt_day_tenant_id_delivery_id_idx ON ONLY postrider.attempt_day USING btree (tenant_id, delivery_id);

CREATE INDEX attempt_not_delivered ON ONLY postrider.attempt USING btree (tenant_id, outcome, delivery_id) WHERE (outcome <> 'delivered'::text);

CREATE INDEX attempt_day_tenant_id_outcome_delivery_id_idx ON ONLY postrider.attempt_day USING btree (tenant_id, outcome, delivery_id) WHERE (outcome <> 'delivered'::text);

CREATE INDEX attempt_kept_delivery_id_idx ON postrider.attempt_kept USING btree (delivery_id) WHERE (outcome = 'canceled'::text);

CREATE INDEX attempt_kept_endpoint_id_delivery_id_idx ON postrider.attempt_kept USING btree (endpoint_id, delivery_id);

CREATE INDEX attempt_kept_event_id_delivery_id_idx ON postrider.attempt_kept USING btree (event_id, delivery_id) WHERE (replay_id IS NOT NULL);

CREATE INDEX attempt_kept_started_at_created_at_idx ON postrider.attempt_kept USING brin (started_at, created_at) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX attempt_kept_tenant_id_delivery_id_idx ON postrider.attempt_kept USING btree (tenant_id, delivery_id);

CREATE INDEX attempt_kept_tenant_id_outcome_delivery_id_idx ON postrider.attempt_kept USING btree (tenant_id, outcome, delivery_id) WHERE (outcome <> 'delivered'::text);

CREATE INDEX audit_by_action ON postrider.audit USING btree (action, at, id);

CREATE INDEX audit_by_actor ON postrider.audit USING btree (actor, at, id);

CREATE INDEX audit_by_object ON postrider.audit USING btree (object, at, id);

CREATE INDEX audit_by_tenant ON postrider.audit USING btree (tenant_id, at, id);

CREATE INDEX audit_by_time ON postrider.audit USING btree (at, id);

CREATE INDEX brake_span_ended ON postrider.brake_span USING btree (until);

CREATE INDEX contact_request_by_due ON postrider.contact_request USING btree (due_at);

CREATE INDEX contact_token_by_contact ON postrider.contact_token USING btree (tenant_id, address);

CREATE INDEX contact_token_by_expiry ON postrider.contact_token USING btree (expires_at);

CREATE INDEX dead_letter_by_endpoint ON ONLY postrider.dead_letter USING btree (endpoint_id, delivery_id);

CREATE INDEX dead_letter_by_tenant ON ONLY postrider.dead_letter USING btree (tenant_id, delivery_id);

CREATE INDEX dead_letter_count_by_size ON postrider.dead_letter_count USING btree (unresolved DESC);

CREATE INDEX dead_letter_unresolved_by_id ON ONLY postrider.dead_letter USING btree (delivery_id) WHERE (resolved_at IS NULL);

CREATE INDEX dead_letter_day_delivery_id_idx ON ONLY postrider.dead_letter_day USING btree (delivery_id) WHERE (resolved_at IS NULL);

CREATE INDEX dead_letter_day_endpoint_id_delivery_id_idx ON ONLY postrider.dead_letter_day USING btree (endpoint_id, delivery_id);

CREATE INDEX dead_letter_unresolved_by_event ON ONLY postrider.dead_letter USING btree (event_id) WHERE (resolved_at IS NULL);

CREATE INDEX dead_letter_day_event_id_idx ON ONLY postrider.dead_letter_day USING btree (event_id) WHERE (resolved_at IS NULL);

CREATE INDEX dead_letter_unresolved ON ONLY postrider.dead_letter USING btree (tenant_id, cause, delivery_id) WHERE (resolved_at IS NULL);

CREATE INDEX dead_letter_day_tenant_id_cause_delivery_id_idx ON ONLY postrider.dead_letter_day USING btree (tenant_id, cause, delivery_id) WHERE (resolved_at IS NULL);

CREATE INDEX dead_letter_day_tenant_id_delivery_id_idx ON ONLY postrider.dead_letter_day USING btree (tenant_id, delivery_id);

CREATE INDEX dead_letter_kept_delivery_id_idx ON postrider.dead_letter_kept USING btree (delivery_id) WHERE (resolved_at IS NULL);

CREATE INDEX dead_letter_kept_endpoint_id_delivery_id_idx ON postrider.dead_letter_kept USING btree (endpoint_id, delivery_id);

CREATE INDEX dead_letter_kept_event_id_idx ON postrider.dead_letter_kept USING btree (event_id) WHERE (resolved_at IS NULL);

CREATE INDEX dead_letter_kept_tenant_id_cause_delivery_id_idx ON postrider.dead_letter_kept USING btree (tenant_id, cause, delivery_id) WHERE (resolved_at IS NULL);

CREATE INDEX dead_letter_kept_tenant_id_delivery_id_idx ON postrider.dead_letter_kept USING btree (tenant_id, delivery_id);

CREATE INDEX dead_letter_minute_by_time ON postrider.dead_letter_minute USING btree (minute);

CREATE INDEX dead_letter_notice_by_due ON postrider.dead_letter_notice USING btree (due_at) WHERE (due_at IS NOT NULL);

CREATE INDEX disabled_span_by_endpoint ON postrider.disabled_span USING btree (endpoint_id);

CREATE INDEX disabled_span_ended ON postrider.disabled_span USING btree (until) WHERE (until IS NOT NULL);

CREATE INDEX endpoint_by_bucket ON postrider.endpoint USING btree (bucket);

CREATE INDEX endpoint_by_host ON postrider.endpoint USING btree ("substring"(url, '://([^/:?#]+)'::text));

CREATE INDEX endpoint_by_public_id ON postrider.endpoint USING btree (public_id);

CREATE UNIQUE INDEX endpoint_by_tail ON postrider.endpoint USING btree (tenant_id, delivery_tail);

CREATE UNIQUE INDEX endpoint_by_tenant ON postrider.endpoint USING btree (tenant_id, public_id);

CREATE INDEX endpoint_degraded ON postrider.endpoint USING btree (id) WHERE (degraded_since IS NOT NULL);

CREATE INDEX endpoint_paused_by_postrider ON postrider.endpoint USING btree (id) WHERE ((status = 'paused'::text) AND (status_by = 'postrider'::text));

CREATE INDEX endpoint_secret_by_endpoint ON postrider.endpoint_secret USING btree (endpoint_id);

CREATE INDEX endpoint_to_report ON postrider.endpoint USING btree (id) WHERE (((status = 'active'::text) AND ((failing_since IS NOT NULL) OR (reported_stage > 0))) OR ((status = 'disabled'::text) AND (reported_stage < 100)));

CREATE INDEX endpoint_waiting_reported ON postrider.endpoint USING btree (id) WHERE (waiting_reported_at IS NOT NULL);

CREATE INDEX event_by_subject ON ONLY postrider.event USING btree (subject, tenant_id, id) WHERE (subject IS NOT NULL);

CREATE INDEX event_by_tenant ON ONLY postrider.event USING btree (tenant_id, id);

CREATE INDEX event_day_subject_tenant_id_id_idx ON ONLY postrider.event_day USING btree (subject, tenant_id, id) WHERE (subject IS NOT NULL);

CREATE INDEX event_day_tenant_id_id_idx ON ONLY postrider.event_day USING btree (tenant_id, id);

CREATE INDEX event_kept_subject_tenant_id_id_idx ON postrider.event_kept USING btree (subject, tenant_id, id) WHERE (subject IS NOT NULL);

CREATE INDEX event_kept_tenant_id_id_idx ON postrider.event_kept USING btree (tenant_id, id);

CREATE INDEX event_key_by_event ON postrider.event_key USING btree (event_id);

CREATE INDEX fanout_task_by_tenant ON postrider.fanout_task USING btree (tenant_id, event_id);

CREATE INDEX former_url_by_time ON postrider.former_url USING btree (until);

CREATE INDEX inbox_by_source ON ONLY postrider.inbox USING btree (source_id, id);

CREATE INDEX inbox_content_by_id ON postrider.inbox_content USING btree (id);

CREATE INDEX inbox_dead ON ONLY postrider.inbox USING btree (source_id, id) WHERE (dead_at IS NOT NULL);

CREATE INDEX inbox_key_by_id ON postrider.inbox_key USING btree (id);

CREATE INDEX inbox_queue_due ON postrider.inbox_queue USING btree (source_id, work, is_ordered, due_at, "position");

CREATE INDEX inbox_queue_heads ON postrider.inbox_queue USING btree (source_id, work, bucket, partition_key, "position") WHERE is_ordered;

CREATE INDEX notice_by_due ON postrider.notice USING btree (due_at);

CREATE INDEX outbox_failed ON postrider.outbox USING btree (retry_at, id) WHERE ((attempts > 0) AND (set_aside_at IS NULL) AND (processed_at IS NULL));

CREATE INDEX outbox_fresh ON postrider.outbox USING btree (xid, id) WHERE ((attempts = 0) AND (processed_at IS NULL));

CREATE INDEX outbox_processed ON postrider.outbox USING btree (processed_at, id) WHERE (processed_at IS NOT NULL);

CREATE INDEX outbox_set_aside ON postrider.outbox USING btree (id) WHERE ((set_aside_at IS NOT NULL) AND (processed_at IS NULL));

CREATE INDEX pause_span_by_tenant ON postrider.pause_span USING btree (tenant_id, endpoint_id);

CREATE INDEX pause_span_ended ON postrider.pause_span USING btree (until) WHERE (until IS NOT NULL);

CREATE INDEX publish_log_by_xid ON postrider.publish_log USING btree (xid);

CREATE INDEX queue_lane ON postrider.queue USING btree (bucket, endpoint_id, retry, "position", due_at, id);

CREATE INDEX queue_replayed ON postrider.queue USING btree (event_id, id) WHERE (replay_id IS NOT NULL);

CREATE INDEX replay_by_requester ON postrider.replay USING btree (requested_by, created_at) WHERE (kind = 'delivery'::text);

CREATE INDEX replay_by_tenant ON postrider.replay USING btree (tenant_id, id);

CREATE UNIQUE INDEX replay_running ON postrider.replay USING btree (tenant_id) WHERE (status = 'running'::text);

CREATE INDEX replay_unfinished ON postrider.replay USING btree (tenant_id, id) WHERE (status = ANY (ARRAY['queued'::text, 'running'::text]));

CREATE INDEX replayed_by_replay ON postrider.replayed USING btree (replay_id, delivery_id);

CREATE INDEX rollup_by_endpoint ON postrider.rollup USING btree (endpoint_id, hour);

CREATE INDEX rollup_by_tenant ON postrider.rollup USING btree (tenant_id, hour);

CREATE INDEX session_by_expiry ON postrider.session USING btree (expires_at);

CREATE INDEX session_by_key ON postrider.session USING btree (key_id);

CREATE INDEX session_by_link ON postrider.session USING btree (link_id);

CREATE INDEX session_by_tenant ON postrider.session USING btree (tenant_id);

CREATE INDEX sign_in_link_by_expiry ON postrider.sign_in_link USING btree (expires_at);

CREATE INDEX sign_in_link_by_key ON postrider.sign_in_link USING btree (key_id);

CREATE INDEX sign_in_link_by_tenant ON postrider.sign_in_link USING btree (tenant_id, id);

CREATE INDEX sign_in_link_unused ON postrider.sign_in_link USING btree (tenant_id, expires_at) WHERE (used_at IS NULL);

CREATE INDEX source_secret_by_source ON postrider.source_secret USING btree (source_id);

CREATE INDEX subscription_by_endpoint ON postrider.subscription USING btree (endpoint_id);

CREATE INDEX subscription_span_by_endpoint ON postrider.subscription_span USING btree (endpoint_id, pattern);

CREATE INDEX subscription_span_ended ON postrider.subscription_span USING btree (until);

CREATE INDEX unserved_span_by_bucket ON postrider.unserved_span USING btree (bucket, until);

CREATE INDEX unserved_span_ended ON postrider.unserved_span USING btree (until);

ALTER INDEX postrider.attempt_canceled ATTACH PARTITION postrider.attempt_day_delivery_id_idx;

ALTER INDEX postrider.attempt_by_endpoint ATTACH PARTITION postrider.attempt_day_endpoint_id_delivery_id_idx;

ALTER INDEX postrider.attempt_replayed ATTACH PARTITION postrider.attempt_day_event_id_delivery_id_idx;

ALTER INDEX postrider.attempt_by_time ATTACH PARTITION postrider.attempt_day_started_at_created_at_idx;

ALTER INDEX postrider.attempt_by_tenant ATTACH PARTITION postrider.attempt_day_tenant_id_delivery_id_idx;

ALTER INDEX postrider.attempt_not_delivered ATTACH PARTITION postrider.attempt_day_tenant_id_outcome_delivery_id_idx;

ALTER INDEX postrider.attempt_canceled ATTACH PARTITION postrider.attempt_kept_delivery_id_idx;

ALTER INDEX postrider.attempt_by_endpoint ATTACH PARTITION postrider.attempt_kept_endpoint_id_delivery_id_idx;

ALTER INDEX postrider.attempt_replayed ATTACH PARTITION postrider.attempt_kept_event_id_delivery_id_idx;

ALTER INDEX postrider.attempt_by_time ATTACH PARTITION postrider.attempt_kept_started_at_created_at_idx;

ALTER INDEX postrider.attempt_by_tenant ATTACH PARTITION postrider.attempt_kept_tenant_id_delivery_id_idx;

ALTER INDEX postrider.attempt_not_delivered ATTACH PARTITION postrider.attempt_kept_tenant_id_outcome_delivery_id_idx;

ALTER INDEX postrider.dead_letter_unresolved_by_id ATTACH PARTITION postrider.dead_letter_day_delivery_id_idx;

ALTER INDEX postrider.dead_letter_by_endpoint ATTACH PARTITION postrider.dead_letter_day_endpoint_id_delivery_id_idx;

ALTER INDEX postrider.dead_letter_unresolved_by_event ATTACH PARTITION postrider.dead_letter_day_event_id_idx;

ALTER INDEX postrider.dead_letter_unresolved ATTACH PARTITION postrider.dead_letter_day_tenant_id_cause_delivery_id_idx;

ALTER INDEX postrider.dead_letter_by_tenant ATTACH PARTITION postrider.dead_letter_day_tenant_id_delivery_id_idx;

ALTER INDEX postrider.dead_letter_unresolved_by_id ATTACH PARTITION postrider.dead_letter_kept_delivery_id_idx;

ALTER INDEX postrider.dead_letter_by_endpoint ATTACH PARTITION postrider.dead_letter_kept_endpoint_id_delivery_id_idx;

ALTER INDEX postrider.dead_letter_unresolved_by_event ATTACH PARTITION postrider.dead_letter_kept_event_id_idx;

ALTER INDEX postrider.dead_letter_unresolved ATTACH PARTITION postrider.dead_letter_kept_tenant_id_cause_delivery_id_idx;

ALTER INDEX postrider.dead_letter_by_tenant ATTACH PARTITION postrider.dead_letter_kept_tenant_id_delivery_id_idx;

ALTER INDEX postrider.event_by_subject ATTACH PARTITION postrider.event_day_subject_tenant_id_id_idx;

ALTER INDEX postrider.event_by_tenant ATTACH PARTITION postrider.event_day_tenant_id_id_idx;

ALTER INDEX postrider.event_by_subject ATTACH PARTITION postrider.event_kept_subject_tenant_id_id_idx;

ALTER INDEX postrider.event_by_tenant ATTACH PARTITION postrider.event_kept_tenant_id_id_idx;

CREATE TRIGGER dead_letter_inserted AFTER INSERT ON postrider.dead_letter REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION postrider.count_new_dead_letters();

CREATE TRIGGER dead_letter_resolved AFTER UPDATE ON postrider.dead_letter REFERENCING OLD TABLE AS stale NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION postrider.count_resolved_dead_letters();

CREATE CONSTRAINT TRIGGER endpoint_change_noticed AFTER UPDATE OF url, status, max_attempts, timeout_ms, give_up_seconds, max_in_flight, rate_per_second, ordering, retry_schedule, on_rejected, signature, headers_sealed, allow_networks ON postrider.endpoint DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION postrider.request_unrecorded_change();

CREATE TRIGGER endpoint_disabled AFTER UPDATE OF status ON postrider.endpoint FOR EACH ROW WHEN (((old.status = 'disabled'::text) <> (new.status = 'disabled'::text))) EXECUTE FUNCTION postrider.record_disabled_span();

CREATE TRIGGER endpoint_updated BEFORE UPDATE OF url, description, status, status_reason, max_attempts, timeout_ms, give_up_seconds, max_in_flight, rate_per_second, ordering, retry_schedule, on_rejected, signature, allow_networks, metadata ON postrider.endpoint FOR EACH ROW EXECUTE FUNCTION postrider.increment_revision();

CREATE TRIGGER endpoint_url_changed BEFORE UPDATE OF url ON postrider.endpoint FOR EACH ROW WHEN ((old.url <> new.url)) EXECUTE FUNCTION postrider.keep_former_url();

CREATE TRIGGER outbox_event_form BEFORE INSERT OR UPDATE ON postrider.outbox FOR EACH ROW EXECUTE FUNCTION postrider.outbox_reject_invalid();

CREATE TRIGGER outbox_on_invalid AFTER INSERT OR UPDATE OF on_invalid ON postrider.outbox_setting FOR EACH ROW EXECUTE FUNCTION postrider.outbox_keep_on_invalid();

CREATE TRIGGER read_only BEFORE DELETE OR UPDATE ON postrider.webhook_dead_letters FOR EACH STATEMENT EXECUTE FUNCTION postrider.reject_view_change('To send a dead letter again, call postrider.replay_delivery(delivery, reason).');

CREATE TRIGGER read_only BEFORE DELETE OR UPDATE ON postrider.webhook_deliveries FOR EACH STATEMENT EXECUTE FUNCTION postrider.reject_view_change('To send a delivery again, call postrider.replay_delivery(delivery, reason).');

CREATE TRIGGER read_only BEFORE DELETE OR UPDATE ON postrider.webhook_delivery_attempts FOR EACH STATEMENT EXECUTE FUNCTION postrider.reject_view_change('To send a delivery again, call postrider.replay_delivery(delivery, reason).');

CREATE TRIGGER read_only BEFORE DELETE OR UPDATE ON postrider.webhook_endpoints FOR EACH STATEMENT EXECUTE FUNCTION postrider.reject_view_change('Call postrider.pause_endpoint(endpoint, reason) or postrider.resume_endpoint(endpoint, reason).');

CREATE TRIGGER read_only BEFORE DELETE OR UPDATE ON postrider.webhook_events FOR EACH STATEMENT EXECUTE FUNCTION postrider.reject_view_change('To send an event again, call postrider.replay_delivery(delivery, reason).');

CREATE TRIGGER read_only BEFORE DELETE OR UPDATE ON postrider.webhook_health FOR EACH STATEMENT EXECUTE FUNCTION postrider.reject_view_change('It is computed from attempts. To send again, call postrider.replay_delivery(delivery, reason).');

CREATE TRIGGER read_only BEFORE DELETE OR UPDATE ON postrider.webhook_outbox FOR EACH STATEMENT EXECUTE FUNCTION postrider.reject_view_change('To publish an event, call postrider.publish(tenant, type, data).');

CREATE TRIGGER read_only BEFORE DELETE OR UPDATE ON postrider.webhook_replay_requests FOR EACH STATEMENT EXECUTE FUNCTION postrider.reject_view_change('To request a replay, call postrider.replay_delivery(delivery, reason).');

CREATE TRIGGER read_only BEFORE DELETE OR UPDATE ON postrider.webhook_subscriptions FOR EACH STATEMENT EXECUTE FUNCTION postrider.reject_view_change('Call postrider.pause_endpoint(endpoint, reason), or change subscriptions with the API.');

CREATE TRIGGER read_only_row INSTEAD OF DELETE OR UPDATE ON postrider.webhook_dead_letters FOR EACH ROW EXECUTE FUNCTION postrider.reject_view_change('To send a dead letter again, call postrider.replay_delivery(delivery, reason).');

CREATE TRIGGER read_only_row INSTEAD OF DELETE OR UPDATE ON postrider.webhook_deliveries FOR EACH ROW EXECUTE FUNCTION postrider.reject_view_change('To send a delivery again, call postrider.replay_delivery(delivery, reason).');

CREATE TRIGGER read_only_row INSTEAD OF DELETE OR UPDATE ON postrider.webhook_delivery_attempts FOR EACH ROW EXECUTE FUNCTION postrider.reject_view_change('To send a delivery again, call postrider.replay_delivery(delivery, reason).');

CREATE TRIGGER read_only_row INSTEAD OF DELETE OR UPDATE ON postrider.webhook_endpoints FOR EACH ROW EXECUTE FUNCTION postrider.reject_view_change('Call postrider.pause_endpoint(endpoint, reason) or postrider.resume_endpoint(endpoint, reason).');

CREATE TRIGGER read_only_row INSTEAD OF DELETE OR UPDATE ON postrider.webhook_events FOR EACH ROW EXECUTE FUNCTION postrider.reject_view_change('To send an event again, call postrider.replay_delivery(delivery, reason).');

CREATE TRIGGER read_only_row INSTEAD OF DELETE OR UPDATE ON postrider.webhook_health FOR EACH ROW EXECUTE FUNCTION postrider.reject_view_change('It is computed from attempts. To send again, call postrider.replay_delivery(delivery, reason).');

CREATE TRIGGER read_only_row INSTEAD OF DELETE OR UPDATE ON postrider.webhook_outbox FOR EACH ROW EXECUTE FUNCTION postrider.reject_view_change('To publish an event, call postrider.publish(tenant, type, data).');

CREATE TRIGGER read_only_row INSTEAD OF DELETE OR UPDATE ON postrider.webhook_replay_requests FOR EACH ROW EXECUTE FUNCTION postrider.reject_view_change('To request a replay, call postrider.replay_delivery(delivery, reason).');

CREATE TRIGGER read_only_row INSTEAD OF DELETE OR UPDATE ON postrider.webhook_subscriptions FOR EACH ROW EXECUTE FUNCTION postrider.reject_view_change('Call postrider.pause_endpoint(endpoint, reason), or change subscriptions with the API.');

CREATE CONSTRAINT TRIGGER subscription_change_noticed AFTER INSERT OR DELETE OR UPDATE ON postrider.subscription DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION postrider.request_unrecorded_change();

CREATE TRIGGER subscription_changed BEFORE UPDATE ON postrider.subscription FOR EACH ROW WHEN (((old.enabled IS DISTINCT FROM new.enabled) OR (old.versions IS DISTINCT FROM new.versions))) EXECUTE FUNCTION postrider.record_subscription_span();

CREATE TRIGGER subscription_deleted BEFORE DELETE ON postrider.subscription FOR EACH ROW EXECUTE FUNCTION postrider.record_subscription_span();

CREATE CONSTRAINT TRIGGER tenant_change_noticed AFTER UPDATE OF status, max_in_flight, rate_per_second, publish_rate_per_second, payload_bytes_max, endpoints_max, allow_networks ON postrider.tenant DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION postrider.request_unrecorded_change();

CREATE TRIGGER tenant_updated BEFORE UPDATE OF name, status, status_reason, max_in_flight, rate_per_second, publish_rate_per_second, payload_bytes_max, endpoints_max, allow_networks, contacts, metadata ON postrider.tenant FOR EACH ROW EXECUTE FUNCTION postrider.increment_revision();

ALTER TABLE ONLY postrider.api_key
    ADD CONSTRAINT api_key_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES postrider.tenant(id);

ALTER TABLE ONLY postrider.contact_request
    ADD CONSTRAINT contact_request_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES postrider.tenant(id);

ALTER TABLE ONLY postrider.contact_secret
    ADD CONSTRAINT contact_secret_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES postrider.tenant(id);

ALTER TABLE ONLY postrider.contact
    ADD CONSTRAINT contact_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES postrider.tenant(id);

ALTER TABLE ONLY postrider.contact_token
    ADD CONSTRAINT contact_token_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES postrider.tenant(id);

ALTER TABLE ONLY postrider.dead_letter_notice
    ADD CONSTRAINT dead_letter_notice_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES postrider.tenant(id);

ALTER TABLE ONLY postrider.dead_letter_unnotified
    ADD CONSTRAINT dead_letter_unnotified_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES postrider.endpoint(id);

ALTER TABLE ONLY postrider.endpoint_secret
    ADD CONSTRAINT endpoint_secret_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES postrider.endpoint(id);

ALTER TABLE ONLY postrider.endpoint
    ADD CONSTRAINT endpoint_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES postrider.tenant(id);

ALTER TABLE ONLY postrider.event_type_version
    ADD CONSTRAINT event_type_version_type_name_fkey FOREIGN KEY (type_name) REFERENCES postrider.event_type(name) ON DELETE CASCADE;

ALTER TABLE ONLY postrider.former_url
    ADD CONSTRAINT former_url_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES postrider.endpoint(id);

ALTER TABLE ONLY postrider.node_in_flight
    ADD CONSTRAINT node_in_flight_node_id_fkey FOREIGN KEY (node_id) REFERENCES postrider.node(id) ON DELETE CASCADE;

ALTER TABLE ONLY postrider.notice
    ADD CONSTRAINT notice_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES postrider.endpoint(id);

ALTER TABLE ONLY postrider.pause_span
    ADD CONSTRAINT pause_span_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES postrider.endpoint(id);

ALTER TABLE ONLY postrider.pause_span
    ADD CONSTRAINT pause_span_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES postrider.tenant(id);

ALTER TABLE ONLY postrider.replay
    ADD CONSTRAINT replay_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES postrider.tenant(id);

ALTER TABLE ONLY postrider.session
    ADD CONSTRAINT session_key_id_fkey FOREIGN KEY (key_id) REFERENCES postrider.api_key(id) ON DELETE CASCADE;

ALTER TABLE ONLY postrider.session
    ADD CONSTRAINT session_link_id_fkey FOREIGN KEY (link_id) REFERENCES postrider.sign_in_link(id) ON DELETE CASCADE;

ALTER TABLE ONLY postrider.session
    ADD CONSTRAINT session_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES postrider.tenant(id) ON DELETE CASCADE;

ALTER TABLE ONLY postrider.sign_in_link
    ADD CONSTRAINT sign_in_link_key_id_fkey FOREIGN KEY (key_id) REFERENCES postrider.api_key(id) ON DELETE CASCADE;

ALTER TABLE ONLY postrider.sign_in_link
    ADD CONSTRAINT sign_in_link_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES postrider.tenant(id) ON DELETE CASCADE;

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
