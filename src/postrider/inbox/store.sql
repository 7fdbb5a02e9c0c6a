-- Storing what came in.

-- name: store
-- $1 id, $2 source, $3 key, $4 provider id, $5 partition key, $6 bucket, $7 ordered, $8 headers, $9 body,
-- $10 for consumers, $11 to be forwarded: arrays of one length, in the order of arrival, no key twice. Returns the ids
-- of those that are new; the others' keys belong to messages that are committed. Waits for transactions that are
-- storing the same keys, taken in order so that nobody waits crosswise. Index: inbox_key_pkey.
with given as materialized (
  select *
  from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::integer[], $7::boolean[], $8::text[],
              $9::text[], $10::boolean[], $11::boolean[])
    with ordinality
    as g (id, source_id, key, provider_id, partition_key, bucket, is_ordered, headers, body, is_consumed, is_forwarded,
          place)
),
taken as (
  insert into inbox_key (source_id, key, id)
  select g.source_id, g.key, g.id
  from given g
  order by g.source_id collate "C", g.key collate "C"
  on conflict (source_id, key) do nothing
  returning id
),
stored as (
  insert into inbox (id, source_id, provider_id, partition_key, bucket, headers, body)
  select g.id, g.source_id, g.provider_id, g.partition_key, g.bucket, g.headers::json, g.body
  from given g
  join taken t on t.id = g.id
),
queued as (
  insert into inbox_queue (id, work, bucket, source_id, partition_key, is_ordered, due_at)
  select g.id, w.work, g.bucket, g.source_id, g.partition_key, g.is_ordered, now()
  from given g
  join taken t on t.id = g.id
  cross join lateral (
    select 'consume' where g.is_consumed
    union all
    select 'forward' where g.is_forwarded
  ) as w (work)
  order by g.place
)
select t.id
from taken t

-- name: limit_lock_wait
-- For this transaction only: a partition is better made a moment later than everybody kept waiting.
select set_config('lock_timeout', '2s', true)

-- name: make_inbox_partition
-- $1 an id that found no partition.
select make_partition('inbox', (id_time($1::uuid) at time zone 'UTC')::date)

-- name: wake_consumers
-- $1 sources. Only wakes: consumers poll anyway. After the commit, at most once per few milliseconds, without waiting
-- for the disk.
select pg_notify('postrider_inbox', s.source)
from unnest($1::text[]) as s (source),
     set_config('synchronous_commit', 'off', true)
