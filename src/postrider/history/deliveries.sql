-- Lists of deliveries and attempts. Runs on connections with custom plans: one statement per filter, never one with
-- optional conditions. All lists are read newest first, a limited number of rows at a time; the caller applies the
-- filters that have no index.

-- part: attempt_columns
a.delivery_id, a.attempt, a.outcome, a.endpoint_id, a.event_id, a.tenant_id, a.status_code, a.error,
a.error_detail, a.started_at, a.total_us, a.created_at, a.next_attempt_at, a.replay_id, a.probed_attempt

-- part: queue_columns
q.id, q.endpoint_id, q.event_id, q.tenant_id, q.attempts, q.due_at, q.created_at, q.replay_id

-- part: attempts_in_range
select {{attempt_columns}}
from attempt a
where a.delivery_id < :before::uuid
  and a.delivery_id >= :from::uuid

-- name: history_of_all
-- Index: the key of the partitions in range.
-- not null: delivery_id, attempt, outcome, endpoint_id, event_id, tenant_id, started_at, total_us, created_at
-- row: history
{{attempts_in_range}}
order by a.delivery_id desc
limit :rows::integer

-- name: history_of_tenant
-- Index: attempt_by_tenant.
-- not null: delivery_id, attempt, outcome, endpoint_id, event_id, tenant_id, started_at, total_us, created_at
-- row: history
{{attempts_in_range}}
  and a.tenant_id = :tenant::text
order by a.delivery_id desc
limit :rows::integer

-- name: history_of_endpoint
-- Index: attempt_by_endpoint.
-- not null: delivery_id, attempt, outcome, endpoint_id, event_id, tenant_id, started_at, total_us, created_at
-- row: history
{{attempts_in_range}}
  and a.endpoint_id = :endpoint::uuid
order by a.delivery_id desc
limit :rows::integer

-- name: canceled_of_all
-- Index: attempt_canceled.
-- not null: delivery_id, attempt, outcome, endpoint_id, event_id, tenant_id, started_at, total_us, created_at
-- row: history
{{attempts_in_range}}
  and a.outcome = 'canceled'
order by a.delivery_id desc
limit :rows::integer

-- name: canceled_of_tenant
-- Index: attempt_not_delivered.
-- not null: delivery_id, attempt, outcome, endpoint_id, event_id, tenant_id, started_at, total_us, created_at
-- row: history
{{attempts_in_range}}
  and a.tenant_id = :tenant::text
  and a.outcome = 'canceled'
order by a.delivery_id desc
limit :rows::integer

-- name: failed_of_tenant
-- Any outcome except `delivered`. Index: attempt_not_delivered.
-- not null: delivery_id, attempt, outcome, endpoint_id, event_id, tenant_id, started_at, total_us, created_at
-- row: history
{{attempts_in_range}}
  and a.tenant_id = :tenant::text
  and a.outcome = :outcome::text
  and a.outcome <> 'delivered'
order by a.delivery_id desc
limit :rows::integer

-- part: dead_letter_ids_in_range
select d.delivery_id
from dead_letter d
where d.delivery_id < :before::uuid
  and d.delivery_id >= :from::uuid

-- name: dead_letter_ids_of_all
-- Index: the key of dead_letter.
-- not null: all
-- row: dead_letter_id
{{dead_letter_ids_in_range}}
order by d.delivery_id desc
limit :rows::integer

-- name: dead_letter_ids_of_tenant
-- Index: dead_letter_by_tenant.
-- not null: all
-- row: dead_letter_id
{{dead_letter_ids_in_range}}
  and d.tenant_id = :tenant::text
order by d.delivery_id desc
limit :rows::integer

-- name: dead_letter_ids_of_endpoint
-- Index: dead_letter_by_endpoint.
-- not null: all
-- row: dead_letter_id
{{dead_letter_ids_in_range}}
  and d.endpoint_id = :endpoint::uuid
order by d.delivery_id desc
limit :rows::integer

-- name: history_of_ids
-- `smallest` and `largest` of the IDs limit the partitions that are read. Index: their key.
-- not null: delivery_id, attempt, outcome, endpoint_id, event_id, tenant_id, started_at, total_us, created_at
-- row: history
select {{attempt_columns}}
from attempt a
where a.delivery_id = any (:deliveries::uuid[])
  and a.delivery_id >= :smallest::uuid
  and a.delivery_id <= :largest::uuid
order by a.delivery_id desc

-- part: wanted_events
-- The four arrays go together: an event, the ID below which its deliveries are wanted, and the first and the last ID that
-- a delivery of it can have. Replays have other IDs, so they are found through their event.
from unnest(:events::uuid[], :before::uuid[], :first::uuid[], :last::uuid[]) with ordinality
       as event (id, before, first, last, number)

-- name: history_of_events
-- Of each event the newest deliveries, at most `rows`. Indexes: the key of each event's partition, attempt_replayed.
-- not null: delivery_id, attempt, outcome, endpoint_id, event_id, tenant_id, started_at, total_us, created_at, number
select {{attempt_columns}}, event.number::integer
{{wanted_events}}
cross join lateral (
  select both_kinds.*
  from (
    (select original.*
     from attempt original
     where original.delivery_id >= event.first
       and original.delivery_id <= event.last
       and original.delivery_id < event.before
       and original.event_id >= first_delivery_id(event.id)
       and original.event_id <= last_delivery_id(event.id)
       and original.replay_id is null
     order by original.delivery_id desc
     limit :rows::integer)
    union all
    (select again.*
     from attempt again
     where again.event_id >= first_delivery_id(event.id)
       and again.event_id <= last_delivery_id(event.id)
       and again.replay_id is not null
       and again.delivery_id < event.before
     order by again.delivery_id desc
     limit :rows)
  ) as both_kinds
  order by both_kinds.delivery_id desc
  limit :rows
) as a
order by event.number, a.delivery_id desc

-- name: queued_of_events
-- As history_of_events, for deliveries in the queue. Indexes: queue_pkey per bucket, queue_replayed.
-- not null: all but replay_id
select {{queue_columns}}, event.number::integer
{{wanted_events}}
cross join lateral (
  select both_kinds.*
  from (
    (select original.*
     from bucket_lease l
     join queue original on original.bucket = l.bucket
                        and original.id >= event.first
                        and original.id <= event.last
                        and original.id < event.before
     where original.event_id >= first_delivery_id(event.id)
       and original.event_id <= last_delivery_id(event.id)
       and original.replay_id is null
     order by original.id desc
     limit :rows::integer)
    union all
    (select again.*
     from queue again
     where again.event_id >= first_delivery_id(event.id)
       and again.event_id <= last_delivery_id(event.id)
       and again.replay_id is not null
       and again.id < event.before
     order by again.id desc
     limit :rows)
  ) as both_kinds
  order by both_kinds.id desc
  limit :rows
) as q
order by event.number, q.id desc

-- name: queued_of_range
-- Reads the newest rows of each bucket, at most `rows_per_bucket`. Returns those of the tenant and the endpoint (null:
-- of any), and of each bucket the last row that was read if there may be more after it (`is_edge`). Index: queue_pkey.
-- not null: all but replay_id
select {{queue_columns}},
       q.number = :rows_per_bucket::integer as is_edge
from unnest(:buckets::integer[]) as home (bucket)
cross join lateral (
  select newest.*, row_number() over (order by newest.id desc) as number
  from (
    select queue.*
    from queue
    where queue.bucket = home.bucket
      and queue.id < :before::uuid
      and queue.id >= :from::uuid
    order by queue.id desc
    limit :rows_per_bucket
  ) newest
) q
where ((:tenant?::text is null or q.tenant_id = :tenant) and (:endpoint?::uuid is null or q.endpoint_id = :endpoint))
   or q.number = :rows_per_bucket

-- name: queued_of_lanes
-- The two arrays go together and name lanes. In no particular order. Index: queue_lane.
-- not null: all but replay_id
select {{queue_columns}}
from unnest(:buckets::integer[], :endpoints::uuid[]) as lane (bucket, endpoint_id)
cross join lateral (
  select queue.*
  from queue
  where queue.bucket = lane.bucket
    and queue.endpoint_id = lane.endpoint_id
  limit :rows::integer
) q
limit :rows

-- name: queued_in_order
-- In the order in which they are sent. The arrays go together: a lane, and the row after which to start in it. Index:
-- queue_lane.
-- not null: all but replay_id
select {{queue_columns}}, q.retry, q.position
from unnest(:buckets::integer[], :endpoints::uuid[], :retries::boolean[], :positions::bigint[],
            :due_times::timestamptz[], :ids::uuid[]) with ordinality
       as lane (bucket, endpoint_id, retry, position, due_at, id, number)
cross join lateral (
  select queue.*
  from queue
  where queue.bucket = lane.bucket
    and queue.endpoint_id = lane.endpoint_id
    and (queue.retry, queue.position, queue.due_at, queue.id) > (lane.retry, lane.position, lane.due_at, lane.id)
    and queue.retry <= :with_retries::boolean
  order by queue.retry, queue.position, queue.due_at, queue.id
  limit :rows::integer
) q
order by lane.number, q.retry, q.position, q.due_at, q.id
limit :rows

-- name: queued_everywhere
-- All tenants, lane by lane, after the given row. Index: queue_lane. The sentinel rows are in bucket -1.
-- not null: all but replay_id
select {{queue_columns}}, q.retry, q.position, q.bucket
from queue q
where (q.bucket, q.endpoint_id, q.retry, q.position, q.due_at, q.id)
      > (:bucket::integer, :endpoint::uuid, :retry::boolean, :position::bigint, :due_at::timestamptz, :id::uuid)
order by q.bucket, q.endpoint_id, q.retry, q.position, q.due_at, q.id
limit :rows::integer

-- name: queued_in_flight
-- What the nodes report as in flight, newest first. Reads at most `rows_read` and returns those of the tenant and the
-- endpoint (null: of any), and the last row that was read if there may be more (`is_edge`); that one may have left the
-- queue. At most some thousand IDs per node; index: queue_pkey.
-- not null: id, is_edge
select s.id, q.endpoint_id, q.event_id, q.tenant_id, q.attempts, q.due_at, q.created_at, q.replay_id,
       s.number = :rows_read::integer as is_edge
from (
  select newest.*, row_number() over (order by newest.id desc) as number
  from (
    select f.id, f.bucket
    from in_flight f
    where f.id < :before::uuid
      and f.id >= :from::uuid
    order by f.id desc
    limit :rows_read
  ) newest
) s
left join queue q on q.bucket = s.bucket and q.id = s.id
where ((:tenant?::text is null or q.tenant_id = :tenant) and (:endpoint?::uuid is null or q.endpoint_id = :endpoint)
       and q.id is not null)
   or s.number = :rows_read
order by s.id desc

-- name: in_flight_of
-- Which of the deliveries are in flight. At most some thousand IDs per node.
-- not null: all
select f.id
from in_flight f
where f.id = any (:deliveries::uuid[])

-- name: waits_of
-- The two arrays go together: deliveries, and the endpoint of each. Those that have left the queue are left out. Indexes: the
-- primary keys of endpoint, tenant and queue, pause_span_by_tenant; for strict endpoints queue_lane.
-- not null: id
select w.id, w.waiting_for, w.give_up_at, w.next_probe_at
from unnest(:deliveries::uuid[], :endpoints::uuid[]) as wanted (id, endpoint_id)
join endpoint e on e.id = wanted.endpoint_id
join delivery_wait w on w.bucket = e.bucket and w.id = wanted.id

-- name: lanes_of_tenant
-- Index: endpoint_by_tenant.
-- not null: all
select e.public_id, e.id, e.bucket, e.ordering = 'strict' as is_strict
from endpoint e
where e.tenant_id = :tenant::text
  and e.public_id > :after::text
order by e.public_id
limit :rows::integer

-- name: lane_of_endpoint
-- Index: endpoint_by_tenant.
-- not null: all
-- row: lane
select e.id, e.bucket, e.ordering = 'strict' as is_strict, e.delivery_tail
from endpoint e
where e.tenant_id = :tenant::text
  and e.public_id = :public_id::text

-- name: lanes_by_public_id
-- Of any tenant; two rows are enough to know that the ID is not unique. Index: endpoint_by_public_id.
-- not null: all
-- row: lane
select e.id, e.bucket, e.ordering = 'strict' as is_strict, e.delivery_tail
from endpoint e
where e.public_id = :public_id::text
limit 2

-- name: all_buckets
-- bucket_lease is small.
-- not null: all
select array_agg(l.bucket) as buckets
from bucket_lease l

-- name: events_of_ids
-- `smallest` and `largest` of the IDs limit the partitions that are read. Index: their key.
-- not null: id, type
select e.id, e.public_id, e.type, e.version, e.subject
from event e
where e.id = any (:events::uuid[])
  and e.id >= :smallest::uuid
  and e.id <= :largest::uuid

-- part: events_about_subject
select e.id
from event e
where e.subject = :subject::text
  and e.id <= :up_to::uuid
  and (e.main_id is null or e.main_id = e.id)

-- name: events_of_subject
-- Newest first. Index: event_by_subject.
-- not null: all
-- row: event_id
{{events_about_subject}}
  and e.tenant_id = :tenant::text
order by e.id desc
limit :rows::integer

-- name: events_of_subject_everywhere
-- Of all tenants, newest first. Index: event_by_subject.
-- not null: all
-- row: event_id
{{events_about_subject}}
order by e.id desc
limit :rows::integer

-- name: endpoints_of_ids
-- Primary key.
-- not null: all
select e.id, e.public_id, e.url, e.max_attempts
from endpoint e
where e.id = any (:endpoints::uuid[])
