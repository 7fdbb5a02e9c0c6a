-- A delivery that failed permanently leaves the queue and becomes a dead letter. Guarded and sorted like the statements
-- in settle.sql, with the same parameters.

-- part: letter_columns
delivery_id, bucket, endpoint_id, event_id, tenant_id, cause, attempts, status_code, error, error_detail, created_at,
                           is_kept

-- part: count_failed
counted as (
  insert into replay_progress as p (replay_id, bucket, failed)
  select replay_id, bucket, count(*)
  from gone
  where replay_id is not null
  group by replay_id, bucket
  order by replay_id, bucket
  on conflict (replay_id, bucket) do update
    set failed = p.failed + excluded.failed
)

-- part: count_letters
-- For the operational event delivery.dead_lettered.
by_minute as (
  insert into dead_letter_minute as m (endpoint_id, minute, cause, dead_letters)
  select endpoint_id, date_trunc('minute', now()), cause, count(*)
  from gone
  group by endpoint_id, cause
  order by endpoint_id, cause
  on conflict (endpoint_id, minute, cause) do update
    set dead_letters = m.dead_letters + excluded.dead_letters
)

-- name: dead_letter
-- Without an exchange (an expired delivery may end without one) the attempt has the number 0.
-- not null: all
with {{delivery/settle/settle.lease}},
gone as (
  delete from queue
  using {{delivery/settle/settle.results}}
  where {{delivery/settle/settle.is_current}}
  returning {{delivery/settle/settle.settled}}
),
letter as (
  insert into dead_letter ({{letter_columns}})
  select id, bucket, endpoint_id, event_id, tenant_id, cause, attempts + is_exchange::int, status_code, error,
         error_detail, created_at,
         id < (select below from kept_since where name = 'events')
  from gone
),
{{count_failed}},
{{count_letters}}
insert into attempt ({{delivery/settle/settle.attempt_columns}}, attempt, outcome)
select {{delivery/settle/settle.attempt_values}}, case when is_exchange then attempts + 1 else 0 end, 'dead_letter'
from gone
returning delivery_id
