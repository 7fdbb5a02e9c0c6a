-- A delivery that ended without success leaves the queue and becomes a dead letter. Guarded and sorted like the
-- statements in settle.sql, whose parameters it shares.

-- name: dead_letter
-- As `delivered`, and: $15 errors, $16 error details, $17 causes, $18 whether there was an exchange (an expired
-- delivery may end without one; its note has attempt 0)
with lease as materialized (
  select array(select case when owner = $1::uuid then epoch else -1 end from bucket_lease order by bucket) as epochs
),
gone as (
  delete from queue
  using unnest($2::int[], $3::uuid[], $4::bigint[], $5::int[], $6::int[], $7::timestamptz[], $8::int[], $9::int[],
               $10::int[], $11::int[], $12::int[], $13::text[], $14::text[], $15::text[], $16::text[], $17::text[],
               $18::boolean[])
          as result (bucket, id, epoch, attempts, status_code, started_at, dns_us, connect_us, tls_us, first_byte_us,
                     total_us, preview, address, error, error_detail, cause, exchanged)
  where queue.bucket = result.bucket
    and queue.id = result.id
    and queue.attempts = result.attempts
    and result.epoch = (select epochs from lease)[result.bucket + 1]
  returning queue.*, result.status_code, result.started_at, result.dns_us, result.connect_us, result.tls_us,
            result.first_byte_us, result.total_us, result.preview, result.address, result.error, result.error_detail,
            result.cause, result.exchanged
),
letter as (
  insert into dead_letter (delivery_id, bucket, endpoint_id, event_id, tenant_id, cause, attempts, status_code, error,
                           error_detail, created_at, is_kept)
  select id, bucket, endpoint_id, event_id, tenant_id, cause, attempts + exchanged::int, status_code, error,
         error_detail, created_at,
         id < (select below from kept_since where name = 'events')
  from gone
),
counted as (
  insert into replay_progress as p (replay_id, bucket, failed)
  select replay_id, bucket, count(*)
  from gone
  where replay_id is not null
  group by replay_id, bucket
  order by replay_id, bucket
  on conflict (replay_id, bucket) do update
    set failed = p.failed + excluded.failed
),
told as (
  insert into dead_letter_minute as m (endpoint_id, minute, cause, letters)
  select endpoint_id, date_trunc('minute', now()), cause, count(*)
  from gone
  group by endpoint_id, cause
  order by endpoint_id, cause
  on conflict (endpoint_id, minute, cause) do update
    set letters = m.letters + excluded.letters
)
insert into attempt (delivery_id, attempt, bucket, endpoint_id, event_id, tenant_id, outcome, status_code, started_at,
                     dns_us, connect_us, tls_us, first_byte_us, total_us, preview, address, node_id, created_at,
                     replay_id, error, error_detail, is_kept)
select id, case when exchanged then attempts + 1 else 0 end, bucket, endpoint_id, event_id, tenant_id, 'dead_letter',
       status_code, started_at, dns_us, connect_us, tls_us, first_byte_us, total_us, preview, address, $1::uuid,
       created_at, replay_id, error, error_detail,
       id < (select below from kept_since where name = 'attempts')
from gone
returning delivery_id
