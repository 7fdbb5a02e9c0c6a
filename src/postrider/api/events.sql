-- Reading events. Runs on connections with custom plans.

-- name: find_event
-- $1 tenant, $2 the id as callers know it, $3 the uuid in it when it has postrider's own form. Indexes:
-- event_key_pkey, the key of one partition.
select e.id, e.outside_id, e.type, e.version, e.subject, e.created_at, e.body
from event e
where e.id = coalesce((select k.event_id
                       from event_key k
                       where k.tenant_id = $1::text
                         and k.kind = 'id'
                         and k.key = $2::text),
                      $3::uuid)
  and e.tenant_id = $1::text;

-- name: list_events
-- The newest first: $1 tenant, ids below $2 and from $3 on, $4 rows at most; the caller filters. Index:
-- event_by_tenant of the partitions in range.
select e.id, e.outside_id, e.type, e.version, e.subject, e.created_at
from event e
where e.tenant_id = $1::text
  and e.id < $2::uuid
  and e.id >= $3::uuid
order by e.id desc
limit $4::integer;

-- name: deliveries_of_event
-- Ids from $1 to $2, $3 rows at most: what is in the queue, and else how the last attempt ended. Replays have
-- ids of their own. Indexes: queue_pkey per bucket, the key of attempt.
with live as materialized (
  select q.id, q.endpoint_id, case when q.attempts = 0 then 'pending' else 'retrying' end as status, q.attempts
  from bucket_lease l
  join queue q on q.bucket = l.bucket and q.id >= $1::uuid and q.id <= $2::uuid
  order by q.id
  limit $3::integer
),
ended as materialized (
  select distinct on (a.delivery_id) a.delivery_id as id, a.endpoint_id, a.outcome as status, a.attempt as attempts
  from attempt a
  where a.delivery_id >= $1::uuid
    and a.delivery_id <= $2::uuid
    and not exists (select from live l where l.id = a.delivery_id)
  order by a.delivery_id, a.attempt desc
  limit $3::integer
)
select d.id, e.outside_id, d.status, d.attempts
from (select id, endpoint_id, status, attempts from live
      union all
      select id, endpoint_id, status, attempts from ended) d
join endpoint e on e.id = d.endpoint_id
order by d.id
limit $3::integer;

-- name: unmatched_endpoints
-- Endpoints of tenant $1 that have no delivery of the event, $6 at most, and why, by the registry of now. $2 patterns that
-- match its type, $3 its version, $4 endpoints (outside ids) that have one, $5 when it was published.
select e.outside_id,
       case
         when e.status = 'disabled' then 'endpoint_disabled'
         when e.created_at > $5::timestamptz then 'endpoint_created_later'
         when s.is_wanted then 'subscribed_later'
         when s.is_other_version then 'version_not_wanted'
         when s.is_off then 'subscription_off'
         else 'no_subscription_matches'
       end as reason
from endpoint e
cross join lateral (
  select coalesce(bool_or(not s.enabled), false) as is_off,
         coalesce(bool_or(s.enabled and not w.fits), false) as is_other_version,
         coalesce(bool_or(s.enabled and w.fits), false) as is_wanted
  from subscription s
  cross join lateral (select coalesce(s.versions is null or $3::text = any (s.versions), false) as fits) w
  where s.tenant_id = e.tenant_id
    and s.pattern = any ($2::text[])
    and s.endpoint_id = e.id
) s
where e.tenant_id = $1::text
  and e.status <> 'deleted'
  and e.outside_id <> all ($4::text[])
order by e.outside_id
limit $6::integer;
