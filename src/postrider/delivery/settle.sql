-- Records what an attempt came to. Every statement takes its arrays sorted by (bucket, id), so that two settles never
-- deadlock. It changes only rows whose attempt count is still the one that was sent and whose bucket is still leased to
-- this node in the same epoch: a node that has lost the bucket changes nothing. It returns the ids that it settled.
-- Dead letters are in dead_letter.sql.
--
-- The leases are read once into an array by bucket (0, 1, …), not joined per row. Columns that the attempt row repeats
-- come from the queue row, not over the wire.
--
-- Index: the primary key of queue; plans are made with the sentinel rows in place, see the migration.

-- name: delivered
-- $1 node, $2 buckets, $3 delivery ids, $4 epochs, $5 attempts before, $6 status codes, $7 started, $8 to $12 phases
-- in µs (lookup, connect, tls, first byte, total), $13 previews, $14 addresses
with lease as materialized (
  select array(select case when owner = $1::uuid then epoch else -1 end from bucket_lease order by bucket) as epochs
),
gone as (
  delete from queue
  using unnest($2::int[], $3::uuid[], $4::bigint[], $5::int[], $6::int[], $7::timestamptz[], $8::int[], $9::int[],
               $10::int[], $11::int[], $12::int[], $13::text[], $14::text[])
          as result (bucket, id, epoch, attempts, status_code, started_at, dns_us, connect_us, tls_us, first_byte_us,
                     total_us, preview, address)
  where queue.bucket = result.bucket
    and queue.id = result.id
    and queue.attempts = result.attempts
    and result.epoch = (select epochs from lease)[result.bucket + 1]
  returning queue.*, result.status_code, result.started_at, result.dns_us, result.connect_us, result.tls_us,
            result.first_byte_us, result.total_us, result.preview, result.address
),
counted as (
  insert into replay_progress as p (replay_id, bucket, delivered)
  select replay_id, bucket, count(*)
  from gone
  where replay_id is not null
  group by replay_id, bucket
  order by replay_id, bucket
  on conflict (replay_id, bucket) do update
    set delivered = p.delivered + excluded.delivered
)
insert into attempt (delivery_id, attempt, bucket, endpoint_id, event_id, tenant_id, outcome, status_code, started_at,
                     dns_us, connect_us, tls_us, first_byte_us, total_us, preview, address, node_id, created_at,
                     replay_id, is_kept)
select id, attempts + 1, bucket, endpoint_id, event_id, tenant_id, 'delivered', status_code, started_at, dns_us,
       connect_us, tls_us, first_byte_us, total_us, preview, address, $1::uuid, created_at, replay_id,
       id < (select below from kept_since where name = 'attempts')
from gone
returning delivery_id

-- name: retrying
-- As `delivered`, and: $15 errors, $16 error details, $17 when it is due again, $18 whether it joins the retries
-- (a strict endpoint's rows do not: there the position rules)
with lease as materialized (
  select array(select case when owner = $1::uuid then epoch else -1 end from bucket_lease order by bucket) as epochs
),
later as (
  update queue
  set attempts = queue.attempts + 1,
      due_at = result.due_at,
      retry = result.retry,
      position = case when result.retry then 0 else queue.position end
  from unnest($2::int[], $3::uuid[], $4::bigint[], $5::int[], $6::int[], $7::timestamptz[], $8::int[], $9::int[],
              $10::int[], $11::int[], $12::int[], $13::text[], $14::text[], $15::text[], $16::text[],
              $17::timestamptz[], $18::boolean[])
         as result (bucket, id, epoch, attempts, status_code, started_at, dns_us, connect_us, tls_us, first_byte_us,
                    total_us, preview, address, error, error_detail, due_at, retry)
  where queue.bucket = result.bucket
    and queue.id = result.id
    and queue.attempts = result.attempts
    and result.epoch = (select epochs from lease)[result.bucket + 1]
  returning queue.*, result.status_code, result.started_at, result.dns_us, result.connect_us, result.tls_us,
            result.first_byte_us, result.total_us, result.preview, result.address, result.error, result.error_detail
)
insert into attempt (delivery_id, attempt, bucket, endpoint_id, event_id, tenant_id, outcome, status_code, started_at,
                     dns_us, connect_us, tls_us, first_byte_us, total_us, preview, address, node_id, created_at,
                     replay_id, error, error_detail, next_attempt_at, is_kept)
select id, attempts, bucket, endpoint_id, event_id, tenant_id, 'retrying', status_code, started_at, dns_us,
       connect_us, tls_us, first_byte_us, total_us, preview, address, $1::uuid, created_at, replay_id, error,
       error_detail, due_at,
       id < (select below from kept_since where name = 'attempts')
from later
returning delivery_id

-- name: limit_lock_wait
-- For this transaction only: a partition is better made a moment later than everybody kept waiting.
select set_config('lock_timeout', '2s', true)

-- name: make_partitions_of
-- The partitions that these deliveries' history needs; made on demand after a long stop.
-- $1 days, as text
select make_partition(parent, day::date)
from unnest(array['attempt', 'dead_letter']) as parent,
     unnest($1::text[]) as day
