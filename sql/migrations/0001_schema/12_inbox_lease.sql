-- The inbox: locking and leasing messages, for consumers and for the forwarder.

-- The time until a failed message is retried: 10 s, doubled each time, at most an hour, plus up to 20 %.
create function inbox_backoff(attempts integer) returns interval language sql volatile as $$
  select make_interval(secs => least(3600, 10 * 2 ^ least(greatest(attempts - 1, 0), 20)) * (1 + random() * 0.2))
$$;

-- Locks the records of messages in the order of their IDs, each looked up by its key. A transaction that changes a message's
-- record and its work locks the record first, so that there are no deadlocks. In read committed, the statements after this
-- see everything that previous owners of the locks have committed.
create function inbox_lock(ids uuid[]) returns void language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
begin
  perform
  from (select distinct i from unnest(ids) as i order by i) as wanted (id)
  cross join lateral (select from postrider.inbox m where m.id = wanted.id for update) as locked;
end
$$;

-- The same for a transaction that has locked work already, and so must not wait. Returns the messages whose records could be
-- locked at once, or do not exist.
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

-- Locks work that is leased to the worker, whose records are locked already, and returns the messages. A claim locks work
-- before records, but only work whose lease has expired: that is never waited for, because the claim's transaction may go
-- on to wait for the records. What another transaction claims counts as taken over. One second covers a lease that expires
-- between the comparison and the lock.
create function inbox_lock_work(of_work text, worker text, ids uuid[]) returns uuid[] language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
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

-- Marks messages as dead. They leave the queue, so that the next ones of their keys can be claimed, and wait in `inbox` for a
-- person.
create function inbox_mark_dead(of_work text, ids uuid[], error text) returns void language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
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

-- Locks up to `wanted` messages that are due. Messages without an order come first. Of those with an order, only the oldest
-- of each key is a candidate, whatever its state: a leased or waiting head blocks its key. The work is limited whatever the
-- backlog: a window of the oldest messages, then the heads of the keys from a random bucket on.
--
-- Plans are made once per session, possibly for an empty queue, and used for a backlog later. So only index scans are
-- allowed, however small the table looks.
create function inbox_candidates(of_work text, of_source text, at timestamptz, wanted integer)
returns uuid[] language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
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

-- The first messages whose bodies have up to `bytes_max` bytes together; at least one. Looks up each message by its key, and
-- reads no body: a row contains the length of a stored text.
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

-- Leases up to `wanted` messages to the worker, with up to `bytes_max` bytes of bodies unless the first one is larger. A
-- message whose lease expired on its last attempt is marked as dead here, because it seems to crash its workers. If another
-- transaction has locked its record (a late ack, for example), it is left for a later call. Candidates over the limit are
-- neither leased nor counted, but stay locked until the end of the caller's transaction.
create function inbox_take(of_work text, worker text, of_source text, wanted integer, lease interval, bytes_max bigint)
returns table (id uuid, attempts integer) language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
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
