-- Deliveries that have waited longer than retention allows for the end of a pause of their endpoint or tenant, or of a hold.

-- name: expire_waiting
-- After 1.5 times `retain_seconds` an operational event reports the endpoint, once until it has no such delivery any more.
-- After twice the time the endpoint is marked, and the owner of its bucket cancels the deliveries (sweep_older). An endpoint
-- whose deliveries are being canceled on request is skipped. Returns at least one row: how many deliveries have waited for
-- 1.5 times or longer, and for each changed endpoint what it waits for, how many of its deliveries are that old, the oldest,
-- how many are canceled, and whether it is reported now. Index queue_pkey: reads the old rows only. Locks the endpoints that
-- it changes; one that is locked by another session is left to the next pass.
-- not null: waiting
with cutoff as materialized (
  select now() - 1.5 * make_interval(secs => :retain_seconds::bigint) as reported,
         now() - 2 * make_interval(secs => :retain_seconds) as canceled
),
old as materialized (
  select q.endpoint_id, count(*) as deliveries, min(q.created_at) as oldest_at,
         count(*) filter (where q.created_at <= (select canceled from cutoff)) as expired
  from bucket_lease l
  join queue q on q.bucket = l.bucket and q.id < (select id_floor(reported) from cutoff)
  where q.created_at <= (select reported from cutoff)
  group by q.endpoint_id
),
waiting as materialized (
  select e.id, o.deliveries, o.oldest_at, o.expired, t.status as tenant_status,
         e.waiting_reported_at is null as is_new,
         o.expired > 0 and e.cancel_before is null as is_canceled
  from old o
  join endpoint e on e.id = o.endpoint_id
  join tenant t on t.id = e.tenant_id
  where e.status in ('active', 'paused')
    and waiting_reason(e.status, t.status, e.held_reason) is not null
),
free as materialized (
  select e.id
  from endpoint e
  where e.id = any (array(
      select w.id from waiting w
      union all
      select r.id from endpoint r where r.waiting_reported_at is not null
    ))
  for no key update skip locked
),
changed as (
  update endpoint e
  set waiting_reported_at = coalesce(e.waiting_reported_at, now()),
      cancel_before = case when w.is_canceled then (select canceled from cutoff) else e.cancel_before end,
      cancel_reason = case
        when w.is_canceled then 'canceled by retention after twice retain_events: '
                                || waiting_reason(e.status, w.tenant_status, e.held_reason)
        else e.cancel_reason
      end
  from waiting w
  where e.id = w.id
    and e.id in (select f.id from free f)
    and (w.is_new or w.is_canceled)
    and (e.cancel_before is null or not w.is_canceled)
    and waiting_reason(e.status, w.tenant_status, e.held_reason) is not null
  returning e.id, e.tenant_id, e.public_id, e.status, waiting_reason(e.status, w.tenant_status, e.held_reason) as what,
            w.deliveries, w.oldest_at, w.is_new, w.is_canceled, case when w.is_canceled then w.expired else 0 end as expired
),
ended as (
  update endpoint e
  set waiting_reported_at = null
  where e.waiting_reported_at is not null
    and e.id in (select f.id from free f)
    and not exists (select from waiting w where w.id = e.id)
)
select s.deliveries as waiting, c.tenant_id, c.public_id, c.what, c.deliveries, c.oldest_at, c.expired, c.is_new,
       case when c.is_new and c.tenant_id <> 'postrider' then
         publish_operational_event('endpoint.deliveries_expiring', json_build_object(
           'tenant_id', c.tenant_id, 'endpoint_id', c.public_id, 'status', c.status, 'waiting_for', c.what,
           'deliveries', c.deliveries, 'oldest_at', c.oldest_at,
           'canceled_from', c.oldest_at + 2 * make_interval(secs => :retain_seconds)))
       end as event_id,
       case when c.is_canceled then record_change('endpoint', c.tenant_id, c.id) end as change
from (select coalesce(sum(w.deliveries), 0)::bigint as deliveries from waiting w) as s
left join changed c on true
