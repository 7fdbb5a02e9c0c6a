-- name: change_lane_waits
-- The arrays go together: lanes in order, and what the due deliveries of each wait for; null: nothing any more. A row of a
-- later epoch is another node's. Index: the key of lane_wait.
with change as (
  select *
  from unnest(:endpoints::uuid[], :are_retries::boolean[], :buckets::integer[], :epochs::bigint[], :reasons::text[])
       as c (endpoint_id, is_retry, bucket, epoch, reason)
),
ended as (
  delete from lane_wait w
  using change c
  where w.endpoint_id = c.endpoint_id
    and w.is_retry = c.is_retry
    and w.epoch <= c.epoch
    and c.reason is null
)
insert into lane_wait (endpoint_id, is_retry, bucket, epoch, reason)
select c.endpoint_id, c.is_retry, c.bucket, c.epoch, c.reason
from change c
where c.reason is not null
on conflict (endpoint_id, is_retry) do update
  set bucket = excluded.bucket,
      epoch = excluded.epoch,
      reason = excluded.reason,
      since = now()
  where lane_wait.epoch <= excluded.epoch
