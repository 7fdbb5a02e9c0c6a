-- Deliveries and attempts, for lists. Runs on connections with custom plans: a statement per shape, never one with
-- optional conditions. Everything is read newest first, at most so many rows at a time; what has no index of its own
-- is filtered by the caller.

-- name: history_of_all
-- $1 ids below, $2 ids from, $3 rows. Index: the key of the partitions in range.
select a.delivery_id, a.attempt, a.outcome, a.endpoint_id, a.event_id, a.tenant_id, a.status_code, a.error,
       a.error_detail, a.started_at, a.total_us, a.created_at, a.next_attempt_at, a.replay_id
from attempt a
where a.delivery_id < $1::uuid
  and a.delivery_id >= $2::uuid
order by a.delivery_id desc
limit $3::integer

-- name: history_of_tenant
-- As history_of_all, $4 tenant. Index: attempt_by_tenant.
select a.delivery_id, a.attempt, a.outcome, a.endpoint_id, a.event_id, a.tenant_id, a.status_code, a.error,
       a.error_detail, a.started_at, a.total_us, a.created_at, a.next_attempt_at, a.replay_id
from attempt a
where a.tenant_id = $4::text
  and a.delivery_id < $1::uuid
  and a.delivery_id >= $2::uuid
order by a.delivery_id desc
limit $3::integer

-- name: history_of_endpoint
-- As history_of_all, $4 endpoint. Index: attempt_by_endpoint.
select a.delivery_id, a.attempt, a.outcome, a.endpoint_id, a.event_id, a.tenant_id, a.status_code, a.error,
       a.error_detail, a.started_at, a.total_us, a.created_at, a.next_attempt_at, a.replay_id
from attempt a
where a.endpoint_id = $4::uuid
  and a.delivery_id < $1::uuid
  and a.delivery_id >= $2::uuid
order by a.delivery_id desc
limit $3::integer

-- name: canceled_of_all
-- As history_of_all. Index: attempt_canceled.
select a.delivery_id, a.attempt, a.outcome, a.endpoint_id, a.event_id, a.tenant_id, a.status_code, a.error,
       a.error_detail, a.started_at, a.total_us, a.created_at, a.next_attempt_at, a.replay_id
from attempt a
where a.outcome = 'canceled'
  and a.delivery_id < $1::uuid
  and a.delivery_id >= $2::uuid
order by a.delivery_id desc
limit $3::integer

-- name: canceled_of_tenant
-- As history_of_all, $4 tenant. Index: attempt_not_delivered.
select a.delivery_id, a.attempt, a.outcome, a.endpoint_id, a.event_id, a.tenant_id, a.status_code, a.error,
       a.error_detail, a.started_at, a.total_us, a.created_at, a.next_attempt_at, a.replay_id
from attempt a
where a.tenant_id = $4::text
  and a.outcome = 'canceled'
  and a.delivery_id < $1::uuid
  and a.delivery_id >= $2::uuid
order by a.delivery_id desc
limit $3::integer

-- name: failed_of_tenant
-- As history_of_all, $4 tenant, $5 an outcome that is not `delivered`. Index: attempt_not_delivered.
select a.delivery_id, a.attempt, a.outcome, a.endpoint_id, a.event_id, a.tenant_id, a.status_code, a.error,
       a.error_detail, a.started_at, a.total_us, a.created_at, a.next_attempt_at, a.replay_id
from attempt a
where a.tenant_id = $4::text
  and a.outcome = $5::text
  and a.outcome <> 'delivered'
  and a.delivery_id < $1::uuid
  and a.delivery_id >= $2::uuid
order by a.delivery_id desc
limit $3::integer

-- name: dead_of_all
-- Ids of dead letters: $1 below, $2 from, $3 rows. Index: the key of dead_letter.
select d.delivery_id
from dead_letter d
where d.delivery_id < $1::uuid
  and d.delivery_id >= $2::uuid
order by d.delivery_id desc
limit $3::integer

-- name: dead_of_tenant
-- As dead_of_all, $4 tenant. Index: dead_letter_by_tenant.
select d.delivery_id
from dead_letter d
where d.tenant_id = $4::text
  and d.delivery_id < $1::uuid
  and d.delivery_id >= $2::uuid
order by d.delivery_id desc
limit $3::integer

-- name: dead_of_endpoint
-- As dead_of_all, $4 endpoint. Index: dead_letter_by_endpoint.
select d.delivery_id
from dead_letter d
where d.endpoint_id = $4::uuid
  and d.delivery_id < $1::uuid
  and d.delivery_id >= $2::uuid
order by d.delivery_id desc
limit $3::integer

-- name: history_of_ids
-- $1 delivery ids, $2 the smallest of them, $3 the largest. Index: the key of the partitions in range.
select a.delivery_id, a.attempt, a.outcome, a.endpoint_id, a.event_id, a.tenant_id, a.status_code, a.error,
       a.error_detail, a.started_at, a.total_us, a.created_at, a.next_attempt_at, a.replay_id
from attempt a
where a.delivery_id = any ($1::uuid[])
  and a.delivery_id >= $2::uuid
  and a.delivery_id <= $3::uuid
order by a.delivery_id desc

-- name: history_of_events
-- Of each event in $1 the newest deliveries with ids below $2: $3 the first id that a delivery of the event can have,
-- $4 the last, $5 rows of each. Replays have ids of their own. Indexes: the key of each event's partition,
-- attempt_replayed.
select a.delivery_id, a.attempt, a.outcome, a.endpoint_id, a.event_id, a.tenant_id, a.status_code, a.error,
       a.error_detail, a.started_at, a.total_us, a.created_at, a.next_attempt_at, a.replay_id, event.number::integer
from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[]) with ordinality as event (id, below, first, last, number)
cross join lateral (
  select both_kinds.*
  from (
    (select original.*
     from attempt original
     where original.delivery_id >= event.first
       and original.delivery_id <= event.last
       and original.delivery_id < event.below
       and original.event_id >= first_delivery_id(event.id)
       and original.event_id <= last_delivery_id(event.id)
       and original.replay_id is null
     order by original.delivery_id desc
     limit $5::integer)
    union all
    (select again.*
     from attempt again
     where again.event_id >= first_delivery_id(event.id)
       and again.event_id <= last_delivery_id(event.id)
       and again.replay_id is not null
       and again.delivery_id < event.below
     order by again.delivery_id desc
     limit $5::integer)
  ) as both_kinds
  order by both_kinds.delivery_id desc
  limit $5::integer
) as a
order by event.number, a.delivery_id desc

-- name: live_of_events
-- As history_of_events, what is in the queue. Indexes: queue_pkey per bucket, queue_replayed.
select q.id, q.endpoint_id, q.event_id, q.tenant_id, q.attempts, q.due_at, q.created_at, q.replay_id,
       event.number::integer
from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[]) with ordinality as event (id, below, first, last, number)
cross join lateral (
  select both_kinds.*
  from (
    (select original.*
     from bucket_lease l
     join queue original on original.bucket = l.bucket
                        and original.id >= event.first
                        and original.id <= event.last
                        and original.id < event.below
     where original.event_id >= first_delivery_id(event.id)
       and original.event_id <= last_delivery_id(event.id)
       and original.replay_id is null
     order by original.id desc
     limit $5::integer)
    union all
    (select again.*
     from queue again
     where again.event_id >= first_delivery_id(event.id)
       and again.event_id <= last_delivery_id(event.id)
       and again.replay_id is not null
       and again.id < event.below
     order by again.id desc
     limit $5::integer)
  ) as both_kinds
  order by both_kinds.id desc
  limit $5::integer
) as q
order by event.number, q.id desc

-- name: live_of_range
-- Of each bucket in $1 the newest $4 rows with ids below $2 and from $3 on; returned are those of tenant $5 and
-- endpoint $6 (null: of any), and of each bucket the last one looked at if there may be more (`is_edge`).
-- Index: queue_pkey.
select q.id, q.endpoint_id, q.event_id, q.tenant_id, q.attempts, q.due_at, q.created_at, q.replay_id,
       q.number = $4::integer as is_edge
from unnest($1::integer[]) as home (bucket)
cross join lateral (
  select newest.*, row_number() over (order by newest.id desc) as number
  from (
    select queue.*
    from queue
    where queue.bucket = home.bucket
      and queue.id < $2::uuid
      and queue.id >= $3::uuid
    order by queue.id desc
    limit $4::integer
  ) newest
) q
where (($5::text is null or q.tenant_id = $5::text) and ($6::uuid is null or q.endpoint_id = $6::uuid))
   or q.number = $4::integer

-- name: live_of_lanes
-- Rows of the lanes ($1 buckets, $2 endpoints), $3 at most, in no particular order. Index: queue_lane.
select q.id, q.endpoint_id, q.event_id, q.tenant_id, q.attempts, q.due_at, q.created_at, q.replay_id
from unnest($1::integer[], $2::uuid[]) as lane (bucket, endpoint_id)
cross join lateral (
  select queue.*
  from queue
  where queue.bucket = lane.bucket
    and queue.endpoint_id = lane.endpoint_id
  limit $3::integer
) q
limit $3::integer

-- name: live_in_order
-- In the order in which they are sent, behind a row: $1 buckets, $2 endpoints, and for each lane the row's
-- $3 retry, $4 position, $5 due, $6 id; $7 rows at most; $8 false: no retries. Index: queue_lane.
select q.id, q.endpoint_id, q.event_id, q.tenant_id, q.attempts, q.due_at, q.created_at, q.replay_id,
       q.retry, q.position
from unnest($1::integer[], $2::uuid[], $3::boolean[], $4::bigint[], $5::timestamptz[], $6::uuid[]) with ordinality
       as lane (bucket, endpoint_id, retry, position, due_at, id, number)
cross join lateral (
  select queue.*
  from queue
  where queue.bucket = lane.bucket
    and queue.endpoint_id = lane.endpoint_id
    and (queue.retry, queue.position, queue.due_at, queue.id) > (lane.retry, lane.position, lane.due_at, lane.id)
    and queue.retry <= $8::boolean
  order by queue.retry, queue.position, queue.due_at, queue.id
  limit $7::integer
) q
order by lane.number, q.retry, q.position, q.due_at, q.id
limit $7::integer

-- name: live_everywhere
-- All tenants, lane by lane: behind $1 bucket, $2 endpoint, $3 retry, $4 position, $5 due, $6 id; $7 rows.
-- Index: queue_lane. The sentinels are in bucket -1.
select q.id, q.endpoint_id, q.event_id, q.tenant_id, q.attempts, q.due_at, q.created_at, q.replay_id,
       q.retry, q.position, q.bucket
from queue q
where (q.bucket, q.endpoint_id, q.retry, q.position, q.due_at, q.id)
      > ($1::integer, $2::uuid, $3::boolean, $4::bigint, $5::timestamptz, $6::uuid)
order by q.bucket, q.endpoint_id, q.retry, q.position, q.due_at, q.id
limit $7::integer

-- name: live_in_flight
-- Newest first what nodes say they are sending: $1 ids below, $2 ids from, $3 looked at, of which $4 tenant and
-- $5 endpoint (null: of any) are returned, and the last one looked at if there may be more (`is_edge`, then maybe
-- without a queue row). At most some thousand ids per node; index: queue_pkey.
select s.id, q.endpoint_id, q.event_id, q.tenant_id, q.attempts, q.due_at, q.created_at, q.replay_id,
       s.number = $3::integer as is_edge
from (
  select newest.*, row_number() over (order by newest.id desc) as number
  from (
    select f.id, f.bucket
    from in_flight f
    where f.id < $1::uuid
      and f.id >= $2::uuid
    order by f.id desc
    limit $3::integer
  ) newest
) s
left join queue q on q.bucket = s.bucket and q.id = s.id
where (($4::text is null or q.tenant_id = $4::text) and ($5::uuid is null or q.endpoint_id = $5::uuid)
       and q.id is not null)
   or s.number = $3::integer
order by s.id desc

-- name: in_flight_of
-- $1 deliveries: which of them are being sent. At most some thousand ids per node.
select f.id
from in_flight f
where f.id = any ($1::uuid[])

-- name: lanes_of_tenant
-- $1 tenant, $2 behind this public ID, $3 rows. Index: endpoint_by_public_id.
select e.public_id, e.id, e.bucket, e.ordering = 'strict'
from endpoint e
where e.tenant_id = $1::text
  and e.public_id > $2::text
order by e.public_id
limit $3::integer

-- name: lane_of_endpoint
-- $1 tenant, $2 public ID. Index: endpoint_by_public_id.
select e.public_id, e.id, e.bucket, e.ordering = 'strict', e.tenant_id, e.delivery_tail
from endpoint e
where e.tenant_id = $1::text
  and e.public_id = $2::text

-- name: lanes_by_name
-- $1 public ID, of whatever tenant; two are enough to know that it is not unique. Index: endpoint_by_name.
select e.public_id, e.id, e.bucket, e.ordering = 'strict', e.tenant_id, e.delivery_tail
from endpoint e
where e.public_id = $1::text
limit 2

-- name: buckets
-- All there are. bucket_lease is small.
select array_agg(l.bucket)
from bucket_lease l

-- name: events_of_ids
-- $1 events, $2 the smallest, $3 the largest. Index: the key of the partitions in range.
select e.id, e.public_id, e.type, e.version, e.subject
from event e
where e.id = any ($1::uuid[])
  and e.id >= $2::uuid
  and e.id <= $3::uuid

-- name: events_of_subject
-- $1 subject, $2 tenant, $3 ids up to, $4 ids from, $5 rows; newest first. Index: event_by_subject.
select e.id
from event e
where e.subject = $1::text
  and e.tenant_id = $2::text
  and e.id <= $3::uuid
  and e.id >= $4::uuid
  and (e.main_id is null or e.main_id = e.id)
order by e.id desc
limit $5::integer

-- name: events_of_subject_everywhere
-- As events_of_subject, of all tenants ($2 is not looked at). Index: event_by_subject.
select e.id
from event e
where e.subject = $1::text
  and $2::text is null
  and e.id <= $3::uuid
  and e.id >= $4::uuid
  and (e.main_id is null or e.main_id = e.id)
order by e.id desc
limit $5::integer

-- name: endpoints_of_ids
-- $1 endpoints. Primary key.
select e.id, e.public_id, e.url, e.max_attempts, e.bucket
from endpoint e
where e.id = any ($1::uuid[])
