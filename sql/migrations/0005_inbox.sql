-- Inbound webhooks: sources, and the inbox of what they sent.
--
-- `inbox` is the record: one row per message, in daily partitions by its id. `inbox_queue` is the work that is left:
-- small, one row per message and kind of work (consume: the application claims it; forward: postrider publishes it).
-- `inbox_key` keeps a message from being stored twice; a partitioned table could not. `inbox_content` does the same for
-- what the sender signed, where the id is not signed and could be changed in a recorded request.

create table source (
  id text collate "C" primary key,
  provider text not null
    check (provider in ('standard', 'svix', 'stripe', 'github', 'shopify', 'slack', 'twilio', 'hmac')),
  description text,
  signature jsonb,                             -- provider hmac: header, prefix, template, hash, encoding, ...
  tolerance_seconds integer not null default 300,
  idempotency_key text,                        -- a header's name or a JSON pointer; null: the provider's own
  deduplicate text check (deduplicate in ('content', 'id')),  -- null: by the provider
  partition_key text,                          -- a header's name or a JSON pointer; null: none
  ordering text not null default 'none' check (ordering in ('none', 'strict')),
  headers text[] not null default '{}',        -- kept beside those that the provider is known for
  body_bytes_max integer not null default 1048576,
  consume boolean not null default true,       -- messages wait for consumers
  forward_tenant_id text collate "C" references tenant (id),
  forward_type text,                           -- template of the event type: stripe.{type}
  max_attempts integer not null default 8,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  check ((forward_tenant_id is null) = (forward_type is null)),
  check (consume or forward_tenant_id is not null)
);

create table source_secret (
  id uuid primary key,
  source_id text collate "C" not null references source (id) on delete cascade,
  sealed bytea not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz                       -- end of an overlap; null: accepted until it is deleted
);
create index source_secret_by_source on source_secret (source_id);

-- What was refused at the door, for operators; senders are told nothing. Added up in memory, written every few seconds.
create table source_rejection (
  source_id text collate "C" not null references source (id) on delete cascade,
  reason text collate "C" not null,
  count bigint not null,
  last_at timestamptz not null,
  last_detail text not null,
  primary key (source_id, reason)
);

create table inbox (
  id uuid not null,
  source_id text collate "C" not null,
  provider_id text,                            -- the idempotency key as the sender gave it; null: it gave none
  partition_key text,
  bucket integer not null,                     -- hash of the partition key, else of the id
  headers json not null,                       -- those that matter, names in lower case
  body text not null,                          -- the exact bytes
  status text not null default 'pending' check (status in ('pending', 'done', 'dead', 'discarded')),
  attempts integer not null default 0,         -- of the work that ended last
  last_error text,
  event_id text collate "C",                   -- forwarded as this event
  received_at timestamptz not null default now(),
  done_at timestamptz,
  dead_at timestamptz,                         -- null again after a retry; indexed instead of status, so that
  dead_work text[],                            -- finishing a message touches no index
  primary key (id)
) partition by range (id);
create index inbox_by_source on inbox (source_id, id);
create index inbox_dead on inbox (source_id, id) where dead_at is not null;

create table inbox_key (
  source_id text collate "C" not null,
  key text collate "C" not null check (octet_length(key) <= 255),
  id uuid not null,
  primary key (source_id, key)
);
create index inbox_key_by_id on inbox_key (id);  -- for retention

create table inbox_content (
  source_id text collate "C" not null,
  digest bytea not null check (octet_length(digest) = 32),
  topics text[] collate "C" not null check (cardinality(topics) between 1 and 8),
  ids uuid[] not null,                         -- the message of each topic
  id uuid not null,                            -- the newest of them
  primary key (source_id, digest)
);
create index inbox_content_by_id on inbox_content (id);  -- for retention

create table inbox_queue (
  id uuid not null,
  work text collate "C" not null check (work in ('consume', 'forward')),
  bucket integer not null,
  source_id text collate "C" not null,
  partition_key text collate "C",
  is_ordered boolean not null,                 -- has a partition key, and its source is strict
  position bigint generated always as identity,
  due_at timestamptz not null,                 -- the end of the lease while there is one
  attempts integer not null default 0,
  leased_by text,
  last_error text,
  primary key (id, work, bucket)
) with (
  vacuum_truncate = off,
  autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_insert_threshold = -1,
  autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_threshold = 50000
);
create index inbox_queue_due on inbox_queue (source_id, work, is_ordered, due_at, position);
create index inbox_queue_heads on inbox_queue (source_id, work, bucket, partition_key, position) where is_ordered;

-- Sentinels, as in queue: the planner must never see it empty.
insert into inbox_queue (id, work, bucket, source_id, partition_key, is_ordered, due_at)
select gen_random_uuid(), 'consume', -1, '', n::text, n % 2 = 0, 'infinity'
from generate_series(1, 5000) as n;

do $$
begin
  alter table inbox alter column body set compression lz4;
exception when feature_not_supported then
  raise notice 'this server is built without lz4: inbox bodies are compressed with pglz';
end
$$;

-- ── partitions ─────────────────────────────────────────────────────────────────────────────────────────────────

create or replace function make_partition(parent text, day date) returns boolean language plpgsql as $$
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
    -- Each row is updated once, when it is done: room for that in its own page.
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

create or replace function make_partitions(back integer default 7, ahead integer default 14)
returns integer language sql as $$
  select count(*)::integer
  from unnest(array['event', 'attempt', 'dead_letter', 'inbox']) as parent,
       generate_series(-back, ahead) as day
  where postrider.make_partition(parent, (now() at time zone 'UTC')::date + day)
$$;

select make_partitions();

-- ── ids ────────────────────────────────────────────────────────────────────────────────────────────────────────

-- 'msg_…' to the uuid inside; null for anything else.
create function message_id(outside text) returns uuid language sql immutable strict as $$
  select case when outside ~ '^msg_[0-9a-f]{32}$' then substr(outside, 5)::uuid end
$$;

create function message_text(id uuid) returns text language sql immutable strict as $$
  select 'msg_' || replace(id::text, '-', '')
$$;

-- ── consumers ──────────────────────────────────────────────────────────────────────────────────────────────────

-- When a message that failed is tried again: 10 s, doubled each time, an hour at most, plus up to 20 %.
create function inbox_backoff(attempts integer) returns interval language sql volatile as $$
  select make_interval(secs => least(3600, 10 * 2 ^ least(greatest(attempts - 1, 0), 20)) * (1 + random() * 0.2))
$$;

-- Locks the records of messages, in the order of their ids, each looked up by its key. Whoever changes a message's record
-- and its work locks the record first, so that nobody waits crosswise. In read committed the statements behind it see
-- all that the holders before have committed.
create function inbox_lock(ids uuid[]) returns void language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
begin
  perform
  from (select distinct i from unnest(ids) as i order by i) as wanted (id)
  cross join lateral (select from postrider.inbox m where m.id = wanted.id for update) as locked;
end
$$;

-- The same for whoever holds work already, and so must not wait: those of the messages whose records could be locked at
-- once, or are gone.
create function inbox_lock_free(ids uuid[]) returns uuid[] language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
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

-- Gives messages up. They leave the queue, so the next ones of their keys can go, and wait for a person in `inbox`.
create function inbox_bury(of_work text, ids uuid[], error text) returns void language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  buried uuid[];
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
  into buried, tries, errors
  from gone g;
  -- Without a join, which might walk along a whole day; they are sorted, so width_bucket is a message's place.
  update postrider.inbox m
  set
    status = 'dead',
    dead_at = now(),
    dead_work = array_append(m.dead_work, of_work),
    attempts = tries[width_bucket(m.id, buried)],
    last_error = coalesce(inbox_bury.error, errors[width_bucket(m.id, buried)])
  where m.id = any (buried)
    and m.id >= buried[1]
    and m.id <= buried[cardinality(buried)];
end
$$;

-- Locks up to `wanted` messages that may be worked on now. Messages without order come first to go; of those with an
-- order only the oldest of each key, whatever state it is in, is a candidate: a leased or waiting head holds its key.
-- Bounded whatever the backlog: a window of the oldest messages, then the heads of the keys behind a random bucket.
--
-- Its plans are made once per session, maybe while the queue is drained, and meet a backlog later: only walks along an
-- index are allowed, however small the table looks.
create function inbox_candidates(of_work text, of_source text, at timestamptz, wanted integer)
returns uuid[] language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
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

-- The first of the messages whose bodies have up to `bytes_max` bytes together; one at least. Measures these messages
-- only, each looked up by its key, and reads no body for it: the length of a stored text stands in its row.
create function inbox_first_bytes(ids uuid[], bytes_max bigint) returns uuid[] language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
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

-- Leases up to `wanted` messages, and `bytes_max` bytes of bodies but for a first one that is larger, to the worker. One
-- whose leases ran out as often as it may be tried is given up here: it takes its workers down with it. If its record is
-- held by somebody else (a late answer, perhaps), it is left alone until a later call. Candidates that were too much are
-- neither leased nor counted, but stay locked, so nobody else takes them, until the end of the caller's transaction.
create function inbox_take(of_work text, worker text, of_source text, wanted integer, lease interval, bytes_max bigint)
returns table (id uuid, attempts integer) language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
  at constant timestamptz := clock_timestamp();  -- not now(): the caller's transaction may be old
  attempts_max constant integer := coalesce((select s.max_attempts from postrider.source s where s.id = of_source), 8);
  candidates uuid[];
  worn_out uuid[];
  given_up uuid[];
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
    given_up := postrider.inbox_lock_free(worn_out);
    exit when cardinality(given_up) = 0;
    perform postrider.inbox_bury(of_work, given_up, 'the lease ended without an answer ' || attempts_max || ' times');
    exit when cardinality(worn_out) < cardinality(candidates);
  end loop;
  candidates := array(
    select c.id
    from unnest(candidates) with ordinality as c (id, place)
    where c.id <> all (worn_out)
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

-- A row type, because a parameter and a column of RETURNS TABLE cannot both be called source.
create type inbox_message as (
  id text,
  source text,
  provider_id text,
  partition_key text,
  headers json,
  body text,
  attempts int,
  received_at timestamptz
);

create function inbox_claim(worker text, source text, max int, lease interval) returns setof inbox_message
language plpgsql security definer set search_path = pg_catalog, postrider, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
  bytes_max constant bigint := 16 << 20;  -- what a consumer, or a node that answers one, holds in memory
  taken uuid[];
  tries integer[];
begin
  if not exists (select from postrider.source s where s.id = inbox_claim.source) then
    raise exception 'there is no source %', inbox_claim.source using errcode = 'no_data_found';
  end if;
  select array_agg(t.id), array_agg(t.attempts) into taken, tries
  from postrider.inbox_take('consume', inbox_claim.worker, inbox_claim.source, inbox_claim.max, inbox_claim.lease,
                            bytes_max) as t;
  if taken is null then
    return;
  end if;
  return query
  select postrider.message_text(m.id), m.source_id, m.provider_id, m.partition_key, m.headers, m.body, t.attempts,
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

-- Messages that are to become events, leased to a node, in order. What is leased is read by a later statement, which
-- also sees what was committed while the first one ran. Each is looked up by its key, in its own day.
create function inbox_forwards(worker text, of_source text, max int, lease interval, bytes_max bigint)
returns table (id uuid, partition_key text, headers text, body text, received_at timestamptz) language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
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

-- Ends the work: what is done leaves the queue, and a message without other work is done. An event has its message's own
-- id. Returns how many; whoever's lease went to somebody else gets 0.
--
-- Both kinds of work may end at once. Each statement has its own snapshot, and the last one is behind the lock of the
-- record: whoever comes second sees that the other's work is gone.
create function inbox_finish(of_work text, worker text, ids uuid[]) returns int language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  finished uuid[];
  tries integer[];
begin
  perform postrider.inbox_lock(ids);
  with ended as (
    delete from postrider.inbox_queue q
    where q.id = any (ids)
      and q.work = of_work
      and q.leased_by = worker
    returning q.id, q.attempts
  )
  select array_agg(e.id order by e.id), array_agg(e.attempts order by e.id) into finished, tries
  from ended e;
  if finished is null then
    return 0;
  end if;
  -- No join, which might walk along a whole day, and no exists, which might read the whole queue into a hash.
  update postrider.inbox m
  set
    status = case
      when m.dead_at is not null then 'dead'
      when (select true from postrider.inbox_queue other where other.id = m.id limit 1) then m.status
      else 'done'
    end,
    attempts = tries[width_bucket(m.id, finished)],  -- its place: they are sorted
    done_at = now(),
    event_id = case of_work when 'forward' then postrider.message_text(m.id) else m.event_id end
  where m.id = any (finished)
    and m.id >= finished[1]
    and m.id <= finished[cardinality(finished)];
  return cardinality(finished);
end
$$;

create function inbox_ack(worker text, ids text[]) returns int
language sql security definer set search_path = pg_catalog, postrider, pg_temp as $$
  select postrider.inbox_finish('consume', inbox_ack.worker,
                                (select array_agg(postrider.message_id(i)) from unnest(inbox_ack.ids) as i))
$$;

create function inbox_extend(worker text, ids text[], lease interval) returns int
language plpgsql security definer set search_path = pg_catalog, postrider, pg_temp as $$
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

-- True if it was the worker's. After the source's max_attempts the message is dead.
create function inbox_fail(of_work text, worker text, of_id uuid, error text, retry_in interval) returns boolean
language plpgsql as $$
declare
  failed record;
begin
  perform postrider.inbox_lock(array[of_id]);  -- before its work: it may have to be buried
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

-- Takes back that the messages were leased, their attempt included: what kept them from being worked on was not their
-- fault. They are due again after the pause. Returns how many were still the worker's.
create function inbox_give_back(of_work text, worker text, ids uuid[], error text, pause interval) returns int
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  given_back int;
begin
  update postrider.inbox_queue q
  set
    due_at = clock_timestamp() + pause,
    leased_by = null,
    attempts = greatest(q.attempts - 1, 0),
    last_error = left(inbox_give_back.error, 4096)
  where q.id = any (ids)
    and q.work = of_work
    and q.leased_by = worker;
  get diagnostics given_back = row_count;
  return given_back;
end
$$;

create function inbox_nack(worker text, id text, error text, retry_in interval default null) returns void
language plpgsql security definer set search_path = pg_catalog, postrider, pg_temp as $$
begin
  perform postrider.inbox_fail('consume', inbox_nack.worker, postrider.message_id(inbox_nack.id), inbox_nack.error,
                               inbox_nack.retry_in);
end
$$;

-- ── who may ────────────────────────────────────────────────────────────────────────────────────────────────────

revoke execute on function inbox_claim, inbox_ack, inbox_extend, inbox_nack from public;
revoke execute on function inbox_forwards, inbox_take, inbox_candidates, inbox_first_bytes, inbox_lock, inbox_lock_free from public;
revoke execute on function inbox_bury, inbox_finish, inbox_fail, inbox_give_back from public;

-- Makes the role of consumers and gives it the inbox functions. Where postrider may not make roles, an administrator
-- makes it and calls this again.
create function grant_consumer() returns void language plpgsql as $$
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
select grant_consumer();
