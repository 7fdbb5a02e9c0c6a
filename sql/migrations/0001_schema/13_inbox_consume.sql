-- The inbox: what consumers call, and how work ends.

-- A row type, because a parameter and a column of RETURNS TABLE cannot both be named source.
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

-- Leases messages that are to be forwarded to a node, in order. A second statement reads them, because it also sees rows that
-- were committed while the first one ran. Each is looked up by its key, in its own day.
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

-- Finishes work: it leaves the queue, and a message without other work is done. A forwarded event has the ID of its message.
-- Returns how many; 0 if the lease was taken over by another worker.
--
-- Both kinds of work may be finished at the same time. Each statement has its own snapshot, and the last one runs under the
-- lock of the record: the second transaction sees that the other work is gone.
create function inbox_finish(of_work text, worker text, ids uuid[]) returns int language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
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

-- True if the message was leased to the worker. After the source's max_attempts the message is dead.
create function inbox_fail(of_work text, worker text, of_id uuid, error text, retry_in interval) returns boolean
language plpgsql as $$
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

-- Undoes the lease of messages, with its attempt, if something else failed than the messages themselves. They are due again
-- after the pause. Returns how many were still leased to the worker.
create function inbox_return(of_work text, worker text, ids uuid[], error text, pause interval) returns int
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
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

create function inbox_nack(worker text, id text, error text, retry_in interval default null) returns void
language plpgsql security definer set search_path = pg_catalog, postrider, pg_temp as $$
begin
  perform postrider.inbox_fail('consume', inbox_nack.worker, postrider.message_id(inbox_nack.id), inbox_nack.error,
                               inbox_nack.retry_in);
end
$$;
