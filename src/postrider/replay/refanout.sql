-- Creates deliveries again from event rows, after the queue or the history was lost. Runs on connections with custom plans.
-- A run is identified by its range, its tenant ('' for all) and the origin that it reads.

-- name: fill_sentinels
-- A truncated queue lacks them: see 05_events_and_queue.sql.
insert into queue (bucket, id, event_id, endpoint_id, tenant_id, due_at, created_at)
select -1, gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), '', 'infinity', 'epoch'
from generate_series(1, 5000 - (select count(*) from queue where bucket = -1))

-- name: kept_since
-- Events and attempts are retained from these times on.
-- not null: all
select greatest(e.since, 'epoch') as events, greatest(a.since, 'epoch') as attempts
from kept_since e
cross join kept_since a
where e.name = 'events'
  and a.name = 'attempts'

-- name: unfinished
-- The progress of a run that was started and not finished.
-- not null: after_row, scanned, queued
select after_id, after_endpoint, after_time, after_row, scanned, queued
from refanout
where since = :since::timestamptz
  and until = :until::timestamptz
  and tenant_id = :tenant::text
  and origin = :origin::text
  and finished_at is null

-- name: unfinished_until
-- The end of the range of the last run that was started and not finished.
-- not null: all
select until
from refanout
where since = :since::timestamptz
  and tenant_id = :tenant::text
  and finished_at is null
order by started_at desc
limit 1

-- name: begin_refanout
-- A run that was finished starts again.
insert into refanout (since, until, tenant_id, origin)
values (:since::timestamptz, :until::timestamptz, :tenant::text, :origin::text)
on conflict (since, until, tenant_id, origin) do update
  set after_id = null, after_endpoint = null, after_time = null, after_row = 0, scanned = 0, queued = 0,
      started_at = now(), updated_at = now(), finished_at = null

-- name: move_refanout
-- The end of a step.
update refanout
set after_id = :after_id?::uuid,
    after_endpoint = :after_endpoint?::uuid,
    after_time = :after_time?::timestamptz,
    after_row = :after_row::bigint,
    scanned = scanned + :more_scanned::bigint,
    queued = queued + :more_queued::bigint,
    updated_at = now(),
    finished_at = case when :is_complete::boolean then now() end
where since = :since::timestamptz
  and until = :until::timestamptz
  and tenant_id = :tenant::text
  and origin = :origin::text

-- name: refan_out
-- Creates (or with `count_only` counts) the deliveries that events lack according to the current subscriptions, some at a
-- time in the order of event and endpoint: from event `first` on, and of that one only endpoints after `after_endpoint`.
-- Skipped are deliveries in the queue, deliveries that were delivered or canceled according to the history, dead letters
-- (a person decides about them), the same for deliveries of replays, and endpoints that were created after the event. A
-- delivery that was being retried continues with its next attempt. A dead letter whose replay is lost gets a new ID, as in
-- a replay.
-- Returns one row: the number of events read and the last of them, the number of missing and of created deliveries, event
-- and endpoint of the last delivery, and the number of events that this step completed. With `count_only` also the first
-- `shown_max` missing deliveries, as arrays of tenant, event and endpoint IDs.
-- Indexes: event_pkey or event_by_tenant, subscription_pkey, the keys of endpoint, queue, attempt, dead_letter and
-- replayed. Locks: events against erasure, and the positions of strict endpoints in order, until commit.
-- not null: scanned, matched, queued, completed, tenants, events, endpoints
with scan as materialized (
  select v.id, v.tenant_id, v.type, v.version, v.main_id, v.erased_at
  from event v
  where (:tenant?::text is null or v.tenant_id = :tenant)
    and v.id >= :first::uuid
    and v.id < :before::uuid
    and (v.main_id is null or v.main_id = v.id)
  order by v.id
  limit :events_max::integer
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
      and (s.id > :first or b.endpoint_id > :after_endpoint::uuid)
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
    limit :deliveries_max::integer
  ) as t
  where s.erased_at is null
    and not exists (select from fanout_task f where f.event_id = s.id)
  order by s.id, t.endpoint_id
  limit :deliveries_max
),
made as materialized (
  select m.place, m.version_id as event_id, m.tenant_id, m.endpoint_id, m.bucket, m.is_strict, m.was_dead, m.first_id,
         case when m.was_dead then new_id() else m.first_id end as id,
         case when m.was_dead then 0
              else coalesce((select greatest(max(a.attempt), 0) from attempt a where a.delivery_id = m.first_id), 0) end as attempts,
         case when m.was_dead then 0
              else coalesce((select greatest(-min(a.attempt), 0) from attempt a where a.delivery_id = m.first_id), 0) end as probes
  from (select * from match order by place) as m
  cross join lateral (
    select v.id
    from event v
    where v.id = m.version_id
      and v.erased_at is null
    offset 0
    for share
  ) as v
  where not :count_only::boolean
),
{{replay/runner.strict_positions}},
queued as (
  insert into queue (bucket, id, event_id, endpoint_id, tenant_id, retry, position, due_at, attempts, probes, created_at)
  select m.bucket, m.id, m.event_id, m.endpoint_id, m.tenant_id, m.attempts > 0 and not m.is_strict,
         coalesce(c.position - o.size + o.rank, 0), now(), m.attempts, m.probes, now()
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
select f.scanned, f.last_scanned, f.matched,
       case when :count_only then f.matched else (select count(*) from queued) end as queued,
       l.event_id as last_event, l.endpoint_id as last_endpoint,
       (select count(*)
        from scan s
        where (s.id > :first or :after_endpoint = '00000000-0000-0000-0000-000000000000')
          and (f.matched < :deliveries_max or s.id <= l.event_id)) as completed,
       x.tenants, x.events, x.endpoints
from (
  select (select count(*) from scan) as scanned,
         (select s.id from scan s order by s.id desc limit 1) as last_scanned,
         (select count(*) from match) as matched
) as f
left join (
  select m.event_id, m.endpoint_id
  from match m
  order by m.place desc
  limit 1
) as l on true
cross join (
  select coalesce(array_agg(s.tenant_id order by s.place), '{}') as tenants,
         coalesce(array_agg(coalesce(v.public_id, public_id_of('evt', v.id)) order by s.place), '{}') as events,
         coalesce(array_agg(e.public_id order by s.place), '{}') as endpoints
  from (select * from match order by place limit :shown_max::integer) as s
  join event v on v.id = coalesce(s.version_id, s.event_id)
  join endpoint e on e.id = s.endpoint_id
  where :count_only
) as x

-- name: restore_events
-- Events of an archive: `archived` is a JSON array of rows as retention writes them. Events that exist stay unchanged.
-- Returns how many rows are in the range, and the smallest and the largest ID of these.
-- not null: found
with given as materialized (
  select r.*
  from json_populate_recordset(null::event, :archived::text::json) as r
  where (:tenant?::text is null or r.tenant_id = :tenant)
    and r.id >= :from::uuid
    and r.id < :before::uuid
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
select (select count(*) from given) as found,
       (select g.id from given g order by g.id limit 1) as smallest,
       (select g.id from given g order by g.id desc limit 1) as largest

-- name: make_days
-- Creates the partitions for the days of these rows; parameters as in restore_events.
select count(*) as created
from (
  select distinct (id_time(r.id) at time zone 'UTC')::date as day
  from json_populate_recordset(null::event, :archived::text::json) as r
  where (:tenant?::text is null or r.tenant_id = :tenant)
    and r.id >= :from::uuid
    and r.id < :before::uuid
) as d
cross join unnest(array['event', 'attempt', 'dead_letter']) as parent
where create_partition(parent, d.day)

-- name: lost_events
-- The arrays go together; `events` are public IDs. Returns the places (from 1) of those that have no event row.
-- not null: all
select i.place
from unnest(:tenants::text[], :events::text[]) with ordinality as i (tenant_id, key, place)
where not exists (
  select
  from event_key k
  join event v on v.id = k.event_id
  where k.tenant_id = i.tenant_id
    and k.kind = 'id'
    and k.key = i.key
)

-- name: forget_keys
-- Deletes the keys of lost events, so that they can be published again. The arrays go together.
delete from event_key k
using unnest(:tenants::text[], :events::text[]) as i (tenant_id, key)
where k.tenant_id = i.tenant_id
  and k.kind = 'id'
  and k.key = i.key
  and not exists (select from event v where v.id = k.event_id)

-- name: forget_keys_of_rows
-- As forget_keys, for rows of an outbox as a JSON array.
delete from event_key k
using json_populate_recordset(null::outbox, :archived::text::json) as r
where k.tenant_id = r.tenant_id
  and k.kind = 'id'
  and k.key = coalesce(r.public_id, 'evt_' || replace(r.event_id::text, '-', ''))
  and not exists (select from event v where v.id = k.event_id)

-- name: publish_rows
-- Archived rows of an outbox as a JSON array. Those whose event is gone are published again (with `count_only`: counted),
-- through postrider's own outbox and under the same IDs. Returns how many.
-- not null: all
with lost as materialized (
  select r.tenant_id, r.type, r.data, r.version, r.occurred_at, r.subject, r.traceparent,
         coalesce(r.public_id, 'evt_' || replace(r.event_id::text, '-', '')) as id
  from json_populate_recordset(null::outbox, :archived::text::json) as r
  where (:tenant?::text is null or r.tenant_id = :tenant)
    and r.created_at >= :since::timestamptz
    and r.created_at < :until::timestamptz
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
  where not :count_only::boolean
)
select case when :count_only then (select count(*) from lost)
            else (select count(p.id) from published p) end as published
