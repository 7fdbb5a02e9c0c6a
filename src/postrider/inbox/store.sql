-- Storing received messages.

-- name: store
-- Arrays of one length, in the order of arrival, no key twice. A message without a digest is not deduplicated by content.
-- Returns the IDs whose keys are new, and whether they are stored: if not, their content was stored before, and
-- release_keys must follow. The keys of the others belong to messages that are committed. Waits for transactions that
-- are storing the same keys or contents. All keys are taken before any content, both in order, so two batches cannot wait
-- for each other. At most 8 topics per content: a topic is not signed. Indexes: inbox_key_pkey, inbox_content_pkey.
-- not null: all
with given as materialized (
  select *
  from unnest(:ids::uuid[], :sources::text[], :keys::text[], :provider_ids::text[], :partition_keys::text[],
              :buckets::integer[], :are_ordered::boolean[], :headers::text[], :bodies::text[],
              :are_consumed::boolean[], :are_forwarded::boolean[], :digests::bytea[], :topics::text[])
    with ordinality
    as g (id, source_id, key, provider_id, partition_key, bucket, is_ordered, headers, body, is_consumed, is_forwarded,
          digest, topic, place)
),
taken as (
  insert into inbox_key (source_id, key, id)
  select g.source_id, g.key, g.id
  from given g
  order by g.source_id collate "C", g.key collate "C"
  on conflict (source_id, key) do nothing
  returning id
),
first_of_topic as (
  select distinct on (g.source_id collate "C", g.digest, g.topic collate "C") g.source_id, g.digest, g.topic, g.id, g.place
  from given g
  join taken t on t.id = g.id
  where g.digest is not null
  order by g.source_id collate "C", g.digest, g.topic collate "C", g.place
),
claimed as (
  insert into inbox_content as c (source_id, digest, topics, ids, id)
  select
    f.source_id,
    f.digest,
    (array_agg(f.topic order by f.place))[1:8],
    (array_agg(f.id order by f.place))[1:8],
    (array_agg(f.id order by f.place desc))[1]
  from first_of_topic f
  group by f.source_id, f.digest
  order by f.source_id collate "C", f.digest
  on conflict (source_id, digest) do update
  set (topics, ids, id) = (
    select array_agg(m.topic order by m.place), array_agg(m.id order by m.place), excluded.id
    from (
      select k.topic, k.id, k.place
      from unnest(c.topics, c.ids) with ordinality as k (topic, id, place)
      union all
      select n.topic, n.id, 8 + n.place
      from unnest(excluded.topics, excluded.ids) with ordinality as n (topic, id, place)
      where n.topic <> all (c.topics)
      order by place
      limit 8
    ) as m
  )
  where cardinality(c.topics) < 8
    and not c.topics @> excluded.topics
  returning c.ids
),
accepted as (
  select t.id
  from taken t
  join given g on g.id = t.id
  left join (select unnest(c.ids) as id from claimed c) as with_content on with_content.id = t.id
  where g.digest is null
    or with_content.id is not null
),
stored as (
  insert into inbox (id, source_id, provider_id, partition_key, bucket, headers, body)
  select g.id, g.source_id, g.provider_id, g.partition_key, g.bucket, g.headers::json, g.body
  from given g
  join accepted a on a.id = g.id
),
queued as (
  insert into inbox_queue (id, work, bucket, source_id, partition_key, is_ordered, due_at)
  select g.id, w.work, g.bucket, g.source_id, g.partition_key, g.is_ordered, now()
  from given g
  join accepted a on a.id = g.id
  cross join lateral (
    select 'consume' where g.is_consumed
    union all
    select 'forward' where g.is_forwarded
  ) as w (work)
  order by g.place
)
select t.id, a.id is not null as is_stored
from taken t
left join accepted a on a.id = t.id

-- name: release_keys
-- :ids that the store of this transaction was given. Frees the keys of those that it did not store: an ID that is not
-- signed must not be used up by a request that was recorded. Index inbox_key_by_id, primary key of inbox.
delete from inbox_key k
using unnest(:ids::uuid[]) as given (id)
where k.id = given.id
  and (select true from inbox m where m.id = k.id) is null

-- name: limit_lock_wait
-- For this transaction only: better create a partition a moment later than keep everyone waiting.
select set_config('lock_timeout', '2s', true) as lock_timeout

-- name: make_inbox_partition
-- :id found no partition.
select create_partition('inbox', (id_time(:id::uuid) at time zone 'UTC')::date) as made

-- name: wake_consumers
-- Only wakes: consumers poll anyway. After the commit, at most once per few milliseconds, without waiting
-- for the disk.
select pg_notify('postrider_inbox', s.source) as notified
from unnest(:sources::text[]) as s (source),
     set_config('synchronous_commit', 'off', true)
