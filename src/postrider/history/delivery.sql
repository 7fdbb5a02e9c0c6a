-- One delivery: where it stands and everything that was tried.

-- name: live_delivery
-- $1 delivery. Indexes: queue_pkey per bucket. The owner of the bucket is who will send it.
select q.id, q.endpoint_id, q.event_id, q.tenant_id, q.attempts, q.due_at, q.created_at, q.replay_id, l.owner
from bucket_lease l
join queue q on q.bucket = l.bucket and q.id = $1::uuid

-- name: dead_letter_of
-- $1 delivery. Index: the key of one partition.
select d.cause, d.dead_at, d.resolved_at, d.resolution, d.attempts, d.endpoint_id, d.event_id, d.tenant_id,
       d.created_at
from dead_letter d
where d.delivery_id = $1::uuid

-- name: attempts_of
-- $1 delivery, $2 attempts behind, $3 rows; the note of one that ended without an exchange comes last. Index: the
-- key of one partition.
select a.attempt, a.outcome, a.status_code, a.error, a.error_detail, a.started_at, a.dns_us, a.connect_us, a.tls_us,
       a.first_byte_us, a.total_us, a.preview, a.address, a.next_attempt_at, a.node_id, n.name
from attempt a
left join node n on n.id = a.node_id
where a.delivery_id = $1::uuid
  and case when a.attempt = 0 then 2147483647 else a.attempt end > $2::integer
order by case when a.attempt = 0 then 2147483647 else a.attempt end
limit $3::integer

-- name: attempts_of_keys
-- $1 deliveries and $2 numbers of the attempts, $3 the smallest delivery, $4 the largest. The first columns as in
-- attempts_of. Index: the key of the partitions in range.
select a.attempt, a.outcome, a.status_code, a.error, a.error_detail, a.started_at, a.dns_us, a.connect_us, a.tls_us,
       a.first_byte_us, a.total_us, a.preview, a.address, a.next_attempt_at, a.node_id, n.name,
       a.delivery_id, a.endpoint_id, a.event_id, a.tenant_id, a.replay_id
from unnest($1::uuid[], $2::integer[]) with ordinality as wanted (delivery_id, attempt, number)
join attempt a on a.delivery_id = wanted.delivery_id
              and a.attempt = wanted.attempt
              and a.delivery_id >= $3::uuid
              and a.delivery_id <= $4::uuid
left join node n on n.id = a.node_id
order by wanted.number
