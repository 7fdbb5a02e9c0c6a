-- The inbox for people and programs: lists, repairs, and consumers that do not speak SQL.

-- name: newest_messages
-- $1 source, $2 the last id of the page before (newest first) or null, $3 rows, $4 since, $5 until or null: id and status.
-- A custom plan: inbox_by_source.
select m.id, m.status
from inbox m
where m.source_id = $1::text
  and ($2::uuid is null or m.id < $2)
  and ($4::timestamptz is null or m.id >= id_floor($4))
  and ($5::timestamptz is null or m.id < id_floor($5))
order by m.id desc
limit $3::integer

-- name: dead_messages
-- As newest_messages, the dead ones. Index: inbox_dead.
select m.id, m.status
from inbox m
where m.source_id = $1::text
  and m.dead_at is not null
  and ($2::uuid is null or m.id < $2)
  and ($4::timestamptz is null or m.id >= id_floor($4))
  and ($5::timestamptz is null or m.id < id_floor($5))
order by m.id desc
limit $3::integer

-- name: messages_of_ids
-- $1 ids, $2 the smallest and $3 the largest of them; the newest first. Keys of the partitions in range.
select
  m.id, m.source_id, m.provider_id, m.partition_key, m.bucket, m.headers::text, m.body, m.status, m.attempts,
  m.last_error, m.event_id, m.received_at, m.done_at, m.dead_at, q.attempts, q.leased_by, q.due_at, q.last_error
from inbox m
left join lateral (
  select w.attempts, w.leased_by, w.due_at, w.last_error
  from inbox_queue w
  where w.id = m.id
  order by w.work
  limit 1
) as q on true
where m.id = any ($1::uuid[])
  and m.id >= $2::uuid
  and m.id <= $3::uuid
order by m.id desc

-- name: find_message
-- $1 source, $2 id. Key of its partition.
select
  m.id, m.source_id, m.provider_id, m.partition_key, m.bucket, m.headers::text, m.body, m.status, m.attempts,
  m.last_error, m.event_id, m.received_at, m.done_at, m.dead_at, q.attempts, q.leased_by, q.due_at, q.last_error
from inbox m
left join lateral (
  select w.attempts, w.leased_by, w.due_at, w.last_error
  from inbox_queue w
  where w.id = m.id
  order by w.work
  limit 1
) as q on true
where m.id = $2::uuid
  and m.source_id = $1::text

-- name: dead_ids
-- $1 source, $2 limit: the oldest dead ones. inbox_dead.
select m.id
from inbox m
where m.source_id = $1::text
  and m.dead_at is not null
order by m.id
limit $2::integer

-- name: lock_messages
-- $1 ids. In front of a repair, in its transaction: the repair then sees what others have just done to the messages'
-- work. See inbox_lock.
select inbox_lock($1::uuid[])

-- name: retry_messages
-- $1 source, $2 ids in order, $3 the first and $4 the last of them. The dead go back into the queue, at its end; those
-- that wait for their next try are due now. Returns how many of both.
with revived as (
  update inbox m
  set
    status = 'pending',
    dead_at = null,
    dead_work = null
  from inbox old
  where m.id = any ($2::uuid[])
    and m.id >= $3::uuid
    and m.id <= $4::uuid
    and m.source_id = $1::text
    and m.dead_at is not null
    and old.id = m.id
    and old.id >= $3::uuid
    and old.id <= $4::uuid
  returning m.id, m.bucket, m.source_id, m.partition_key, old.dead_work
),
requeued as (
  insert into inbox_queue (id, work, bucket, source_id, partition_key, is_ordered, due_at)
  select r.id, w.work, r.bucket, r.source_id, r.partition_key, s.ordering = 'strict' and r.partition_key is not null,
         now()
  from revived r
  join source s on s.id = r.source_id
  cross join unnest(r.dead_work) as w (work)
  order by r.id
  on conflict do nothing
),
hurried as (
  update inbox_queue q
  set due_at = now()
  where q.id = any ($2::uuid[])
    and q.source_id = $1::text
    and q.leased_by is null
    and q.due_at > now()
  returning q.id
)
select (select count(*) from revived) + (select count(*) from hurried)

-- name: discard_messages
-- $1 source, $2 ids, $3 the first and $4 the last of them, $5 reason. What is neither done nor discarded leaves the
-- queue, whoever holds it. Returns how many.
with discarded as (
  update inbox m
  set
    status = 'discarded',
    dead_at = null,
    dead_work = null,
    done_at = now(),
    last_error = coalesce($5::text, m.last_error)
  where m.id = any ($2::uuid[])
    and m.id >= $3::uuid
    and m.id <= $4::uuid
    and m.source_id = $1::text
    and m.status in ('pending', 'dead')
  returning m.id
),
unqueued as (
  delete from inbox_queue q
  using discarded d
  where q.id = d.id
)
select count(*)
from discarded

-- name: claim
-- $1 worker, $2 source, $3 how many at most, $4 seconds of lease.
select id, source, provider_id, partition_key, headers::text, body, attempts, received_at
from inbox_claim($1::text, $2::text, $3::integer, make_interval(secs => $4::float8))

-- name: ack
-- $1 worker, $2 ids.
select inbox_ack($1::text, $2::text[])

-- name: nack
-- $1 worker, $2 id, $3 error, $4 seconds until the next try or null.
select inbox_fail('consume', $1::text, message_id($2::text), $3::text, make_interval(secs => $4::float8))

-- name: extend
-- $1 worker, $2 ids, $3 seconds of lease.
select inbox_extend($1::text, $2::text[], make_interval(secs => $3::float8))

-- name: inbox_lag
-- The oldest due message per kind of work, over all sources: a look at the first row of each range of inbox_queue_due.
select w.work, coalesce(max(extract(epoch from now() - first.due_at)), 0)::float8
from unnest(array['consume', 'forward']) as w (work)
left join lateral (
  select q.due_at
  from source s
  cross join unnest(array[false, true]) as o (is_ordered)
  cross join lateral (
    select f.due_at
    from inbox_queue f
    where f.source_id = s.id and f.work = w.work and f.is_ordered = o.is_ordered
    order by f.due_at
    limit 1
  ) as q
  where q.due_at < now()
) as first on true
group by w.work

-- name: inbox_depth
-- An estimate from the statistics collector; 5,000 sentinels are not messages.
select greatest(n_live_tup - 5000, 0)::bigint
from pg_stat_user_tables
where relid = 'postrider.inbox_queue'::regclass
