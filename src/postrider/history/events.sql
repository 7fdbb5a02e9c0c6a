-- Reading events. Runs on connections with custom plans.

-- name: find_event
-- By its public ID, and by the uuid in it if it has postrider's own form. Indexes: event_key_pkey, the key of one
-- partition.
-- not null: id, type, created_at, body, has_versions
select e.id, e.public_id, e.type, e.version, e.subject, e.created_at, e.body, e.main_id is not null as has_versions
from event e
where e.id = coalesce((select k.event_id
                       from event_key k
                       where k.tenant_id = :tenant::text
                         and k.kind = 'id'
                         and k.key = :public_id::text),
                      :id?::uuid)
  and e.tenant_id = :tenant

-- name: versions_of_event
-- An event in several versions has one row for each, with IDs between `first` and `last`. In order of preference. Index:
-- the key of one partition.
-- not null: body
select e.version, e.body
from event e
where e.id >= :first::uuid
  and e.id <= :last::uuid
order by e.id < :event::uuid, e.id

-- part: events_in_range
select e.id, e.public_id, e.type, e.version, e.subject, e.created_at
from event e
where e.tenant_id = :tenant::text
  and e.id < :before::uuid
  and e.id >= :from::uuid
  and (e.main_id is null or e.main_id = e.id)

-- name: list_events
-- Newest first; the caller filters. Index: event_by_tenant of the partitions in range.
-- not null: id, type, created_at
-- row: listed_event
{{events_in_range}}
order by e.id desc
limit :rows::integer

-- name: list_events_of_subject
-- Index: event_by_subject of the partitions in range.
-- not null: id, type, created_at
-- row: listed_event
{{events_in_range}}
  and e.subject = :subject::text
order by e.id desc
limit :rows::integer

-- name: list_event_bodies
-- Newest first, each version by itself. Index: event_by_tenant of all partitions.
-- not null: id, type, created_at, body
select e.id, e.public_id, e.type, e.version, e.subject, e.created_at, e.body
from event e
where e.tenant_id = :tenant::text
  and e.id < :before::uuid
order by e.id desc
limit :rows::integer

-- name: unmatched_endpoints
-- Endpoints of the tenant that have no delivery of the event, among the first 5,000, and the reason according to what they
-- were when it was published. `patterns` match the event's type; `delivery_head` is the first 20 hex digits of the IDs of
-- its deliveries. Indexes: endpoint_by_tenant, the keys of queue and attempt, disabled_span_by_endpoint,
-- subscription_span_by_endpoint.
-- not null: all
select e.public_id,
       case
         when e.created_at > :published_at::timestamptz then 'endpoint_created_later'
         when exists (select
                      from disabled_span d
                      where d.endpoint_id = e.id
                        and d.since <= :published_at
                        and (d.until is null or d.until > :published_at)) then 'endpoint_disabled'
         when s.was_wanted then 'delivery_missing'
         when s.was_other_version then 'version_not_wanted'
         when s.was_off then 'subscription_off'
         when s.is_wanted then 'subscribed_later'
         else 'no_subscription_matches'
       end as reason
from (
  select endpoint.*, (:delivery_head::text || endpoint.delivery_tail)::uuid as delivery_id
  from endpoint
  where endpoint.tenant_id = :tenant::text
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
           now_or_then.since <= :published_at and now_or_then.until > :published_at as was,
           coalesce(now_or_then.versions is null or now_or_then.versions && :versions::text[], false) as fits
    from (
      select s.enabled, s.versions, s.since, 'infinity'::timestamptz as until, true as is_now
      from subscription s
      where s.tenant_id = e.tenant_id
        and s.pattern = any (:patterns::text[])
        and s.endpoint_id = e.id
      union all
      select p.enabled, p.versions, p.since, p.until, false
      from subscription_span p
      where p.endpoint_id = e.id
        and p.pattern = any (:patterns)
        and p.until > :published_at
    ) as now_or_then
  ) as state
) s
where not exists (select from queue q where q.bucket = e.bucket and q.id = e.delivery_id)
  and not exists (select from attempt a where a.delivery_id = e.delivery_id)
order by e.public_id
limit :rows::integer
