-- Records attempts and their outcomes. Every statement takes its arrays sorted by (bucket, id), so that two settles never
-- deadlock. It changes only rows whose attempt count is still the one that was sent and whose bucket is still leased to
-- this node in the same epoch: a node that has lost the bucket changes nothing. It returns the ids that it settled.
-- Dead letters are in dead_letter.sql.
--
-- The leases of the batch's buckets are read once into a hash table, not joined per row: `is true` keeps the planner from
-- making a join of it. Columns that the attempt row repeats come from the queue row, not over the wire.
--
-- Indexes: the primary keys of queue and bucket_lease; plans are made with the sentinel rows in place, see the migration.

-- part: lease
lease as materialized (
  select bucket, epoch
  from bucket_lease
  where owner = :node::uuid
    and bucket = any (:buckets::int[])
)

-- part: results
-- One row per attempt. A statement that does not use an array passes it empty: its column is then null.
unnest(:buckets, :ids::uuid[], :epochs::bigint[], :attempts_before::int[], :status_codes::int[],
       :started_at::timestamptz[], :lookup_us::int[], :connect_us::int[], :tls_us::int[], :first_byte_us::int[],
       :total_us::int[], :previews::text[], :addresses::text[], :errors::text[], :error_details::text[],
       :due_at::timestamptz[], :are_retries::boolean[], :causes::text[], :are_exchanges::boolean[],
       :probes_before::int[], :are_probes::boolean[], :are_extra::boolean[], :url_versions::int[], :send_us::int[],
       :bytes_sent::int[], :bytes_received::int[], :flags::int[], :content_types::text[], :response_headers::text[])
  as result (bucket, id, epoch, attempts_before, status_code, started_at, lookup_us, connect_us, tls_us, first_byte_us,
             total_us, preview, address, error, error_detail, next_due_at, is_retry, cause, is_exchange,
             probes_before, is_probe, is_extra, url_version, send_us, bytes_sent, bytes_received, flags, content_type,
             response_headers)

-- part: is_current
queue.bucket = result.bucket
    and queue.id = result.id
    and queue.attempts = result.attempts_before
    and queue.probes = result.probes_before
    and ((result.bucket, result.epoch) in (select bucket, epoch from lease)) is true

-- part: settled
queue.*, result.status_code, result.started_at, result.lookup_us, result.connect_us, result.tls_us,
            result.first_byte_us, result.total_us, result.preview, result.address, result.error, result.error_detail,
            result.cause, result.is_exchange, result.is_probe, result.is_extra, result.url_version, result.send_us,
            result.bytes_sent, result.bytes_received, result.flags, result.content_type, result.response_headers

-- part: attempt_columns
delivery_id, bucket, endpoint_id, event_id, tenant_id, status_code, started_at, lookup_us, connect_us, tls_us,
                     first_byte_us, total_us, preview, address, error, error_detail, node_id, created_at, replay_id,
                     is_probe, url_version, send_us, bytes_sent, bytes_received, flags, content_type,
                     response_headers, is_kept

-- part: attempt_values
id, bucket, endpoint_id, event_id, tenant_id, status_code, started_at, lookup_us, connect_us, tls_us, first_byte_us,
       total_us, preview, address, error, error_detail, :node, created_at, replay_id,
       is_probe, url_version, send_us, bytes_sent, bytes_received, flags, content_type, response_headers,
       id < (select below from kept_since where name = 'attempts')

-- name: delivered
-- not null: all
with {{lease}},
gone as (
  delete from queue
  using {{results}}
  where {{is_current}}
  returning {{settled}}
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
insert into attempt ({{attempt_columns}}, attempt, outcome)
select {{attempt_values}}, attempts + 1, 'delivered'
from gone
returning delivery_id

-- name: retrying
-- `are_retries`: false for the rows of a strict endpoint, which stay in the order of their positions. `are_extra`: failed
-- probes, which use no attempt and leave the row due as it was.
-- not null: all
with {{lease}},
later as (
  update queue
  set attempts = queue.attempts + (not result.is_extra)::int,
      probes = queue.probes + result.is_extra::int,
      due_at = case when result.is_extra then queue.due_at else result.next_due_at end,
      retry = case when result.is_extra then queue.retry else result.is_retry end,
      position = case when result.is_retry and not result.is_extra then 0 else queue.position end
  from {{results}}
  where {{is_current}}
  returning {{settled}}
)
insert into attempt ({{attempt_columns}}, attempt, outcome, next_attempt_at, probed_attempt)
select {{attempt_values}}, case when is_extra then -probes else attempts end, 'retrying', due_at,
       case when is_extra then attempts + 1 end
from later
returning delivery_id

-- name: limit_lock_wait
-- For this transaction only: a partition is better created a moment later than all other work blocked.
-- not null: all
select set_config('lock_timeout', '2s', true) as lock_timeout

-- name: make_partitions_of
-- The partitions that the history of these deliveries needs; created on demand after a long stop.
-- not null: all
select create_partition(parent, day::date) as is_new
from unnest(array['attempt', 'dead_letter']) as parent,
     unnest(:days::text[]) as day
