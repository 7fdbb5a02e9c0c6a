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

-- name: unmatched_endpoints
-- Endpoints of the tenant that have no delivery of the event, among the first 5,000, and the reason according to the
-- current registry. `patterns` match the event's type; `delivery_head` is the first 20 hex digits of the IDs of its
-- deliveries. Indexes: endpoint_by_public_id, the keys of queue and attempt.
-- not null: all
select e.public_id,
       case
         when e.status = 'disabled' then 'endpoint_disabled'
         when e.created_at > :published_at::timestamptz then 'endpoint_created_later'
         when s.is_wanted then 'subscribed_later'
         when s.is_other_version then 'version_not_wanted'
         when s.is_off then 'subscription_off'
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
  select coalesce(bool_or(not s.enabled), false) as is_off,
         coalesce(bool_or(s.enabled and not w.fits), false) as is_other_version,
         coalesce(bool_or(s.enabled and w.fits), false) as is_wanted
  from subscription s
  cross join lateral (select coalesce(s.versions is null or s.versions && :versions::text[], false) as fits) w
  where s.tenant_id = e.tenant_id
    and s.pattern = any (:patterns::text[])
    and s.endpoint_id = e.id
) s
where not exists (select from queue q where q.bucket = e.bucket and q.id = e.delivery_id)
  and not exists (select from attempt a where a.delivery_id = e.delivery_id)
order by e.public_id
limit :rows::integer
