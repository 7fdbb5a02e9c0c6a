-- Reading events. Runs on connections with custom plans.

-- name: find_event
-- $1 tenant, $2 the id as callers know it, $3 the uuid in it when it has postrider's own form. Indexes:
-- event_key_pkey, the key of one partition.
select e.id, e.public_id, e.type, e.version, e.subject, e.created_at, e.body, e.main_id is not null
from event e
where e.id = coalesce((select k.event_id
                       from event_key k
                       where k.tenant_id = $1::text
                         and k.kind = 'id'
                         and k.key = $2::text),
                      $3::uuid)
  and e.tenant_id = $1::text;

-- name: versions_of_event
-- $1 and $2 between which the ids of the event's rows lie, $3 the event. In order of preference. Index: the key of one
-- partition.
select e.version, e.body
from event e
where e.id >= $1::uuid
  and e.id <= $2::uuid
order by e.id < $3::uuid, e.id;

-- name: list_events
-- The newest first: $1 tenant, ids below $2 and from $3 on, $4 rows at most; the caller filters. Index:
-- event_by_tenant of the partitions in range.
select e.id, e.public_id, e.type, e.version, e.subject, e.created_at
from event e
where e.tenant_id = $1::text
  and e.id < $2::uuid
  and e.id >= $3::uuid
  and (e.main_id is null or e.main_id = e.id)
order by e.id desc
limit $4::integer;

-- name: list_events_of_subject
-- As list_events, $5 subject. Index: event_by_subject of the partitions in range.
select e.id, e.public_id, e.type, e.version, e.subject, e.created_at
from event e
where e.subject = $5::text
  and e.tenant_id = $1::text
  and e.id < $2::uuid
  and e.id >= $3::uuid
  and (e.main_id is null or e.main_id = e.id)
order by e.id desc
limit $4::integer;

-- name: unmatched_endpoints
-- Endpoints of tenant $1 that have no delivery of the event, $6 at most among the first 5,000, and why, by what they were
-- when it was published. $2 patterns that match its type, $3 its versions, $4 the first 20 hex digits of its deliveries' ids, $5 when it
-- was published. Indexes: endpoint_by_public_id, the keys of queue and attempt, disabled_span_by_endpoint,
-- subscription_span_by_endpoint.
select e.public_id,
       case
         when e.created_at > $5::timestamptz then 'endpoint_created_later'
         when exists (select
                      from disabled_span d
                      where d.endpoint_id = e.id
                        and d.since <= $5
                        and (d.until is null or d.until > $5)) then 'endpoint_disabled'
         when s.was_wanted then 'delivery_missing'
         when s.was_other_version then 'version_not_wanted'
         when s.was_off then 'subscription_off'
         when s.is_wanted then 'subscribed_later'
         else 'no_subscription_matches'
       end as reason
from (
  select endpoint.*, ($4::text || endpoint.delivery_tail)::uuid as delivery_id
  from endpoint
  where endpoint.tenant_id = $1::text
    and endpoint.status <> 'deleted'
  order by endpoint.public_id
  limit 5000
) e
cross join lateral (
  select bool_or(state.was and not state.enabled) as was_off,
         bool_or(state.was and state.enabled and not state.fits) as was_other_version,
         bool_or(state.was and state.enabled and state.fits) as was_wanted,
         bool_or(state.is_now and state.enabled and state.fits) as is_wanted
  from (
    select now_or_then.enabled,
           now_or_then.is_now,
           now_or_then.since <= $5 and now_or_then.until > $5 as was,
           coalesce(now_or_then.versions is null or now_or_then.versions && $3::text[], false) as fits
    from (
      select s.enabled, s.versions, s.since, 'infinity'::timestamptz as until, true as is_now
      from subscription s
      where s.tenant_id = e.tenant_id
        and s.pattern = any ($2::text[])
        and s.endpoint_id = e.id
      union all
      select p.enabled, p.versions, p.since, p.until, false
      from subscription_span p
      where p.endpoint_id = e.id
        and p.pattern = any ($2)
        and p.until > $5
    ) as now_or_then
  ) as state
) s
where not exists (select from queue q where q.bucket = e.bucket and q.id = e.delivery_id)
  and not exists (select from attempt a where a.delivery_id = e.delivery_id)
order by e.public_id
limit $6::integer;
