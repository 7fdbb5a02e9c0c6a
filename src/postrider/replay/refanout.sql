-- Deliveries made again from event rows, after the queue or the history was lost. Custom plans.

-- name: fill_sentinels
-- What a truncated queue lacks: see 0001_engine.sql.
insert into queue (bucket, id, event_id, endpoint_id, tenant_id, due_at, created_at)
select -1, gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), '', 'infinity', 'epoch'
from generate_series(1, 5000 - (select count(*) from queue where bucket = -1))

-- name: kept_since
-- From when on events are kept, and their attempts.
select greatest(e.since, 'epoch'), greatest(a.since, 'epoch')
from kept_since e
cross join kept_since a
where e.name = 'events'
  and a.name = 'attempts'

-- name: unfinished
-- $1 since, $2 until, $3 tenant or '', $4 place: how far one is that was begun and not finished.
select after_id, after_endpoint, after_time, after_row, looked_at, queued
from refanout
where since = $1::timestamptz
  and until = $2::timestamptz
  and tenant_id = $3::text
  and place = $4::text
  and finished_at is null

-- name: unfinished_until
-- $1 since, $2 tenant or '': the end of the last one that was begun and not finished.
select until
from refanout
where since = $1::timestamptz
  and tenant_id = $2::text
  and finished_at is null
order by started_at desc
limit 1

-- name: begin_refanout
-- $1 since, $2 until, $3 tenant or '', $4 place. One that was finished begins anew.
insert into refanout (since, until, tenant_id, place)
values ($1::timestamptz, $2::timestamptz, $3::text, $4::text)
on conflict (since, until, tenant_id, place) do update
  set after_id = null, after_endpoint = null, after_time = null, after_row = 0, looked_at = 0, queued = 0,
      started_at = now(), updated_at = now(), finished_at = null

-- name: move_refanout
-- $1 since, $2 until, $3 tenant or '', $4 place, $5 to $8 how far it is, $9 how many more were looked at, $10 and queued,
-- $11 whether that was all.
update refanout
set after_id = $5::uuid,
    after_endpoint = $6::uuid,
    after_time = $7::timestamptz,
    after_row = $8::bigint,
    looked_at = looked_at + $9::bigint,
    queued = queued + $10::bigint,
    updated_at = now(),
    finished_at = case when $11::boolean then now() end
where since = $1::timestamptz
  and until = $2::timestamptz
  and tenant_id = $3::text
  and place = $4::text

-- name: refan_out
-- The deliveries that events lack, by the subscriptions of now, some at a time in the order of event and endpoint.
--   $1 tenant or null, $2 the event to begin with, $3 and behind which of its endpoints, $4 events below this one,
--   $5 events to look at, $6 deliveries to make, $7 whether only to count
-- Left out: what is in the queue; what history says was delivered or canceled; dead letters, which wait for a person; the
-- same for deliveries of replays; endpoints made after the event. A delivery that was being retried goes on with its next
-- attempt. One that was a dead letter and whose replay is lost gets a fresh id, as a replay does.
-- Returns one row: how many events were read, the last of them, how many deliveries are missing and how many were made,
-- event and endpoint of the last, and how many events were done that were not before. Indexes: event_pkey or event_by_tenant, subscription_pkey, the keys of endpoint, queue, attempt, dead_letter
-- and replayed. Locks: events against erasure, and the positions of strict endpoints in order, until commit.
with scan as materialized (
  select v.id, v.tenant_id, v.type, v.version, v.main_id, v.erased_at
  from event v
  where ($1::text is null or v.tenant_id = $1)
    and v.id >= $2::uuid
    and v.id < $4::uuid
    and (v.main_id is null or v.main_id = v.id)
  order by v.id
  limit $5::integer
),
match as materialized (
  select row_number() over (order by s.id, t.endpoint_id) as place,
         s.id as event_id, t.version_id, s.tenant_id, t.endpoint_id, t.bucket, t.is_strict, t.first_id, t.was_dead
  from scan s
  cross join lateral (
    select distinct on (e.id) e.id as endpoint_id, w.id as version_id, e.bucket, e.ordering = 'strict' as is_strict,
           first.id as first_id,
           exists (select from dead_letter d where d.delivery_id = first.id) as was_dead
    from subscription b
    join endpoint e on e.id = b.endpoint_id
    cross join lateral (
      select (left(replace(s.id::text, '-', ''), 20) || e.delivery_tail)::uuid as id
    ) as first
    cross join lateral (select version_for(s.id, s.main_id, s.version, b.versions) as id) as w
    where b.tenant_id = s.tenant_id
      and b.pattern = any (type_patterns(s.type))
      and b.enabled
      and w.id is not null
      and (s.id > $2::uuid or b.endpoint_id > $3::uuid)
      and e.status in ('active', 'paused')
      and e.created_at < id_time(s.id) + interval '1 minute'
      and not exists (
        select
        from (
          select first.id
          union all
          select r.delivery_id
          from replayed r
          where r.event_id = w.id
            and r.endpoint_id = e.id
        ) as known
        where exists (select from queue q where q.bucket = e.bucket and q.id = known.id)
           or exists (select
                      from attempt a
                      where a.delivery_id = known.id
                        and a.outcome in ('delivered', 'canceled'))
           or exists (select
                      from dead_letter d
                      where d.delivery_id = known.id
                        and d.resolution is distinct from 'replayed')
      )
    order by e.id, b.versions is null, w.id < s.id, w.id
    limit $6::integer
  ) as t
  where s.erased_at is null
    and not exists (select from fanout_task f where f.event_id = s.id)
  order by s.id, t.endpoint_id
  limit $6::integer
),
made as materialized (
  select m.place, m.version_id as event_id, m.tenant_id, m.endpoint_id, m.bucket, m.is_strict, m.was_dead, m.first_id,
         case when m.was_dead then make_id() else m.first_id end as id,
         case when m.was_dead then 0
              else coalesce((select max(a.attempt) from attempt a where a.delivery_id = m.first_id), 0) end as attempts
  from (select * from match order by place) as m
  cross join lateral (
    select v.id
    from event v
    where v.id = m.version_id
      and v.erased_at is null
    offset 0
    for share
  ) as v
  where not $7::boolean
),
ordered as (
  select m.place, m.endpoint_id,
         row_number() over (partition by m.endpoint_id order by m.place) as rank,
         count(*) over (partition by m.endpoint_id) as size
  from made m
  where m.is_strict
),
counter as (
  insert into endpoint_position as p (endpoint_id, position)
  select o.endpoint_id, o.size
  from ordered o
  where o.rank = 1
  order by o.endpoint_id
  on conflict (endpoint_id) do update
    set position = p.position + excluded.position
  returning p.endpoint_id, p.position
),
queued as (
  insert into queue (bucket, id, event_id, endpoint_id, tenant_id, retry, position, due_at, attempts, created_at)
  select m.bucket, m.id, m.event_id, m.endpoint_id, m.tenant_id, m.attempts > 0 and not m.is_strict,
         coalesce(c.position - o.size + o.rank, 0), now(), m.attempts, now()
  from made m
  left join ordered o on o.place = m.place
  left join counter c on c.endpoint_id = o.endpoint_id
  order by m.bucket, m.id
  on conflict (bucket, id) do nothing
  returning id, bucket
),
known as (
  insert into replayed (event_id, endpoint_id, delivery_id, origin_id, replay_id)
  select m.event_id, m.endpoint_id, m.id, m.first_id, '00000000-0000-0000-0000-000000000000'
  from made m
  where m.was_dead
),
logged as (
  insert into publish_log (node_id, first_id, last_id, buckets)
  select '00000000-0000-0000-0000-000000000000', (array_agg(m.id order by m.id))[1],
         (array_agg(m.id order by m.id desc))[1], array_agg(distinct m.bucket)
  from made m
  group by m.was_dead
)
select f.scanned, f.last, f.matched, case when $7 then f.matched else (select count(*) from queued) end, l.event_id,
       l.endpoint_id,
       (select count(*)
        from scan s
        where (s.id > $2::uuid or $3::uuid = '00000000-0000-0000-0000-000000000000')
          and (f.matched < $6 or s.id <= l.event_id))
from (
  select (select count(*) from scan) as scanned,
         (select s.id from scan s order by s.id desc limit 1) as last,
         (select count(*) from match) as matched
) as f
left join (
  select m.event_id, m.endpoint_id
  from match m
  order by m.place desc
  limit 1
) as l on true

-- name: restore_events
-- Events of an archive: $1 a JSON array of rows as retention writes them, $2 tenant or null, $3 and $4 ids from and below.
-- Those that are there stay as they are. Returns how many were in the range, how many were brought back, and the smallest
-- and the largest id of the range.
with given as materialized (
  select r.*
  from json_populate_recordset(null::event, $1::text::json) as r
  where ($2::text is null or r.tenant_id = $2)
    and r.id >= $3::uuid
    and r.id < $4::uuid
    and exists (select from tenant t where t.id = r.tenant_id and t.status <> 'deleted')
),
back as (
  insert into event (id, tenant_id, public_id, type, version, subject, traceparent, body, created_at, erased_at, main_id)
  select g.id, g.tenant_id, g.public_id, g.type, g.version, g.subject, g.traceparent, g.body, g.created_at, g.erased_at,
         g.main_id
  from given g
  where not exists (select from event v where v.id = g.id)
  on conflict do nothing
  returning id
)
select (select count(*) from given), (select count(*) from back),
       (select g.id from given g order by g.id limit 1), (select g.id from given g order by g.id desc limit 1)

-- name: make_days
-- The partitions of the days of these rows: $1, $2, $3, $4 as restore_events.
select count(*)
from (
  select distinct (id_time(r.id) at time zone 'UTC')::date as day
  from json_populate_recordset(null::event, $1::text::json) as r
  where ($2::text is null or r.tenant_id = $2)
    and r.id >= $3::uuid
    and r.id < $4::uuid
) as d
cross join unnest(array['event', 'attempt', 'dead_letter']) as parent
where make_partition(parent, d.day)

-- name: lost_events
-- $1 tenants, $2 event ids as everybody knows them. Returns the places (from 1) of those that have no event row.
select i.place
from unnest($1::text[], $2::text[]) with ordinality as i (tenant_id, key, place)
where not exists (
  select
  from event_key k
  join event v on v.id = k.event_id
  where k.tenant_id = i.tenant_id
    and k.kind = 'id'
    and k.key = i.key
)

-- name: forget_keys
-- Of events that are lost, so that they can be published again: $1 tenants, $2 event ids.
delete from event_key k
using unnest($1::text[], $2::text[]) as i (tenant_id, key)
where k.tenant_id = i.tenant_id
  and k.kind = 'id'
  and k.key = i.key
  and not exists (select from event v where v.id = k.event_id)

-- name: forget_keys_of_rows
-- As forget_keys, for $1 rows of an outbox as a JSON array.
delete from event_key k
using json_populate_recordset(null::outbox, $1::text::json) as r
where k.tenant_id = r.tenant_id
  and k.kind = 'id'
  and k.key = coalesce(r.public_id, 'evt_' || replace(r.event_id::text, '-', ''))
  and not exists (select from event v where v.id = k.event_id)

-- name: publish_rows
-- Archived rows of an outbox: $1 a JSON array, $2 tenant or null, written from $3 on and before $4, $5 whether only to
-- count. Those whose event is gone are published again, by postrider's own outbox and under the same ids. Returns how many.
with lost as materialized (
  select r.tenant_id, r.type, r.data, r.version, r.occurred_at, r.subject, r.traceparent,
         coalesce(r.public_id, 'evt_' || replace(r.event_id::text, '-', '')) as id
  from json_populate_recordset(null::outbox, $1::text::json) as r
  where ($2::text is null or r.tenant_id = $2)
    and r.created_at >= $3::timestamptz
    and r.created_at < $4::timestamptz
    and not exists (select
                    from event_key k
                    join event v on v.id = k.event_id
                    where k.tenant_id = r.tenant_id
                      and k.kind = 'id'
                      and k.key = coalesce(r.public_id, 'evt_' || replace(r.event_id::text, '-', '')))
),
published as materialized (
  select publish(l.tenant_id, l.type, l.data, l.id, l.version, l.occurred_at, l.subject, l.traceparent) as id
  from lost l
  where not $5::boolean
)
select case when $5 then (select count(*) from lost) else (select count(p.id) from published p) end
