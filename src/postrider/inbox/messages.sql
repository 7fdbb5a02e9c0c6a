-- The inbox for the API: lists, repairs, and consumers that do not use SQL.

-- part: messages_in_range
select m.id, m.status
from inbox m
where m.source_id = :source::text
  and (:before?::uuid is null or m.id < :before)
  and (:since?::timestamptz is null or m.id >= id_floor(:since))
  and (:until?::timestamptz is null or m.id < id_floor(:until))

-- name: newest_messages
-- Newest first, with a custom plan. Index: inbox_by_source.
-- not null: all
-- row: listed_message
{{messages_in_range}}
order by m.id desc
limit :rows::integer

-- name: dead_messages
-- As newest_messages, those with the status dead. Index: inbox_dead.
-- not null: all
-- row: listed_message
{{messages_in_range}}
  and m.dead_at is not null
order by m.id desc
limit :rows::integer

-- part: shown_messages
select m.id, m.source_id, m.provider_id, m.partition_key, m.bucket, m.headers::text as headers, m.body, m.status,
       m.attempts, m.last_error, m.event_id, m.received_at, m.done_at, m.dead_at, q.attempts as queue_attempts,
       q.leased_by, q.due_at, q.last_error as queue_error
from inbox m
left join lateral (
  select w.attempts, w.leased_by, w.due_at, w.last_error
  from inbox_queue w
  where w.id = m.id
  order by w.work
  limit 1
) as q on true

-- name: messages_of_ids
-- Newest first. `smallest` and `largest` of the IDs limit the partitions that are read. Index: their key.
-- not null: id, source_id, bucket, headers, body, status, attempts, received_at
-- row: message
{{shown_messages}}
where m.id = any (:ids::uuid[])
  and m.id >= :smallest::uuid
  and m.id <= :largest::uuid
order by m.id desc

-- name: find_message
-- Key of its partition.
-- not null: id, source_id, bucket, headers, body, status, attempts, received_at
-- row: message
{{shown_messages}}
where m.id = :id::uuid
  and m.source_id = :source::text

-- name: dead_ids
-- Oldest first. Index: inbox_dead.
-- not null: all
select m.id
from inbox m
where m.source_id = :source::text
  and m.dead_at is not null
order by m.id
limit :rows::integer

-- name: lock_messages
-- Before a repair, in its transaction: the repair then sees the latest state of the messages' work. See inbox_lock.
select inbox_lock(:ids::uuid[]) as locked

-- name: retry_messages
-- Puts dead messages back at the end of the queue, and makes those that wait for their next attempt due now. `ids` are in
-- order; `smallest` and `largest` of them limit the partitions. Returns how many of both.
-- not null: all
with revived as (
  update inbox m
  set
    status = 'pending',
    dead_at = null,
    dead_work = null
  from inbox old
  where m.id = any (:ids::uuid[])
    and m.id >= :smallest::uuid
    and m.id <= :largest::uuid
    and m.source_id = :source::text
    and m.dead_at is not null
    and old.id = m.id
    and old.id >= :smallest
    and old.id <= :largest
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
due_now as (
  update inbox_queue q
  set due_at = now()
  where q.id = any (:ids)
    and q.source_id = :source
    and q.leased_by is null
    and q.due_at > now()
  returning q.id
)
select (select count(*) from revived) + (select count(*) from due_now) as messages

-- name: discard_messages
-- Messages that are neither done nor discarded leave the queue, even if they are leased. Parameters as in retry_messages.
-- Returns how many.
-- not null: all
with discarded as (
  update inbox m
  set
    status = 'discarded',
    dead_at = null,
    dead_work = null,
    done_at = now(),
    last_error = coalesce(:reason?::text, m.last_error)
  where m.id = any (:ids::uuid[])
    and m.id >= :smallest::uuid
    and m.id <= :largest::uuid
    and m.source_id = :source::text
    and m.status in ('pending', 'dead')
  returning m.id
),
unqueued as (
  delete from inbox_queue q
  using discarded d
  where q.id = d.id
)
select count(*) as messages
from discarded

-- name: claim
-- not null: all but provider_id, partition_key
select id, source, provider_id, partition_key, headers::text as headers, body, attempts, received_at
from inbox_claim(:worker::text, :source_id::text, :rows::integer, make_interval(secs => :lease_seconds::float8))

-- name: ack
-- not null: all
select inbox_ack(:worker::text, :ids::text[]) as acked

-- name: nack
-- Without `pause_seconds` the next attempt follows after the usual pause.
-- not null: all
select inbox_fail('consume', :worker::text, message_id(:id::text), :error?::text,
                  make_interval(secs => :pause_seconds?::float8)) as is_nacked

-- name: extend
-- not null: all
select inbox_extend(:worker::text, :ids::text[], make_interval(secs => :lease_seconds::float8)) as extended

-- name: inbox_lag
-- The age of the oldest due message for each kind of work, over all sources: reads the first row of each range of
-- inbox_queue_due.
-- not null: all
select w.work, coalesce(max(extract(epoch from now() - first.due_at)), 0)::float8 as seconds
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
-- An estimate from the statistics; the 5,000 sentinel rows are not messages.
-- not null: all
select greatest(n_live_tup - 5000, 0)::bigint as messages
from pg_stat_user_tables
where relid = 'postrider.inbox_queue'::regclass
