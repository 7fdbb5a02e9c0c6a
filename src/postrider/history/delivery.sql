-- One delivery: its state, and every attempt.

-- name: queued_delivery
-- The owner of the bucket is the node that will send it. Indexes: queue_pkey per bucket.
-- not null: all but replay_id, owner
select q.id, q.endpoint_id, q.event_id, q.tenant_id, q.attempts, q.due_at, q.created_at, q.replay_id, l.owner
from bucket_lease l
join queue q on q.bucket = l.bucket and q.id = :delivery::uuid

-- name: dead_letter_of
-- Index: the key of one partition.
-- not null: cause, dead_at
select d.cause, d.dead_at, d.resolved_at, d.resolution
from dead_letter d
where d.delivery_id = :delivery::uuid

-- part: timeline_columns
a.attempt, a.is_probe, a.probed_attempt, a.outcome, a.status_code, a.error, a.error_detail, a.started_at, a.lookup_us, a.connect_us, a.tls_us,
a.first_byte_us, a.total_us, a.send_us, a.bytes_sent, a.bytes_received, a.flags, a.content_type, a.response_headers, a.preview,
a.address, a.next_attempt_at, a.node_id, n.name as node_name,
case when a.url_version = p.url_version then p.url else u.url end as url

-- part: timeline_joins
left join node n on n.id = a.node_id
left join endpoint p on p.id = a.endpoint_id
left join former_url u on u.endpoint_id = a.endpoint_id and u.version = a.url_version

-- name: attempts_of
-- In the order of their numbers, after a number and a probe: failed probes come before the attempt with their number, and
-- attempt 0, which records that a delivery ended without a request, comes last. Index: the key of one partition.
-- not null: attempt, is_probe, outcome, started_at, total_us, flags, node_id
select {{timeline_columns}}
from attempt a
{{timeline_joins}}
where a.delivery_id = :delivery::uuid
  and (case when a.attempt = 0 then 2147483647 else coalesce(a.probed_attempt, a.attempt) end,
       case when a.attempt < 0 then -a.attempt else 2147483647 end) > (:after::integer, :after_probe::integer)
order by case when a.attempt = 0 then 2147483647 else coalesce(a.probed_attempt, a.attempt) end,
         case when a.attempt < 0 then -a.attempt else 2147483647 end
limit :rows::integer

-- name: attempts_of_keys
-- The two arrays go together; `smallest` and `largest` of the deliveries limit the partitions that are read. Index: their
-- key.
-- not null: attempt, is_probe, outcome, started_at, total_us, flags, node_id, delivery_id, endpoint_id, event_id, tenant_id
select {{timeline_columns}}, a.delivery_id, a.endpoint_id, a.event_id, a.tenant_id, a.replay_id
from unnest(:deliveries::uuid[], :attempts::integer[]) with ordinality as wanted (delivery_id, attempt, number)
join attempt a on a.delivery_id = wanted.delivery_id
              and a.attempt = wanted.attempt
              and a.delivery_id >= :smallest::uuid
              and a.delivery_id <= :largest::uuid
{{timeline_joins}}
order by wanted.number
