-- Made by `./dev schema` from sql/migrations, to be read and compared. Do not edit.

CREATE SCHEMA postrider;

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

CREATE FUNCTION postrider.make_partition(parent text, day date) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
declare
  partition text := parent || '_' || to_char(day, 'YYYYMMDD');
  range_column text := case parent when 'event' then 'id' else 'delivery_id' end;
  low uuid := postrider.id_floor(day::timestamp at time zone 'UTC');
  high uuid := postrider.id_floor((day + 1)::timestamp at time zone 'UTC');
begin
  if to_regclass('postrider.' || partition) is not null then
    return false;
  end if;
  execute format('create table postrider.%I (like postrider.%I including all)', partition, parent);
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
  from unnest(array['event', 'attempt', 'dead_letter']) as parent,
       generate_series(-back, ahead) as day
  where postrider.make_partition(parent, (now() at time zone 'UTC')::date + day)
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
    CONSTRAINT node_slot_check CHECK (((slot >= 0) AND (slot <= 16383)))
)
WITH (fillfactor='50');

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

ALTER TABLE ONLY postrider.migration
    ADD CONSTRAINT migration_pkey PRIMARY KEY (version);

ALTER TABLE ONLY postrider.node
    ADD CONSTRAINT node_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postrider.node
    ADD CONSTRAINT node_slot_key UNIQUE (slot);

ALTER TABLE ONLY postrider.pause_span
    ADD CONSTRAINT pause_span_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postrider.queue
    ADD CONSTRAINT queue_pkey PRIMARY KEY (bucket, id);

ALTER TABLE ONLY postrider.registry_version
    ADD CONSTRAINT registry_version_pkey PRIMARY KEY (singleton);

ALTER TABLE ONLY postrider.setting
    ADD CONSTRAINT setting_pkey PRIMARY KEY (name);

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

CREATE INDEX pause_span_by_tenant ON postrider.pause_span USING btree (tenant_id, endpoint_id);

CREATE INDEX publish_log_by_xid ON postrider.publish_log USING btree (xid);

CREATE INDEX queue_lane ON postrider.queue USING btree (bucket, endpoint_id, retry, "position", due_at, id);

CREATE INDEX subscription_by_endpoint ON postrider.subscription USING btree (endpoint_id);

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

ALTER TABLE ONLY postrider.subscription
    ADD CONSTRAINT subscription_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES postrider.endpoint(id);

ALTER TABLE ONLY postrider.subscription
    ADD CONSTRAINT subscription_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES postrider.tenant(id);
