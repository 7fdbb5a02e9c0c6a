-- Publishing events in several versions. A version is an event row of its own whose ID begins with the same ten bytes, so
-- that an event's deliveries, in whatever version, have IDs of one range and each endpoint can have only one.

-- name: publish_versions
-- As publish, for events in several versions: each endpoint gets the one that its subscription names. A subscription
-- that names some takes precedence over one that names none, which gets the first.
--   :event_ids in order, with tenant, type, bytes of the largest data, publisher's ID, …, created_at as shown
--   :version_events      each version: its event, its rank from 1, the ID of its row (of the first: the event's), its
--                        name, its body
--   :pattern_events      each pattern that matches the type of each event
--   :data_bytes_max      if the tenant has no limit of its own
--   :wide_endpoints      a tenant with more of them is fanned out in chunks
-- Returns at least one row per event: its result, how many deliveries a wide one will have, the tenant's publish rate,
-- and the queue row, if any, with the row of its version.
-- Indexes: tenant_pkey, subscription_pkey, endpoint_pkey. Locks: the position rows of strict endpoints, in order.
-- not null: event_id, result
with item as materialized (
  select i.id, i.place, i.tenant_id, i.type, i.public_id, i.subject, i.traceparent, i.created_at,
         t.id is null as is_unknown,
         t.id is not null and i.data_bytes > coalesce(t.payload_bytes_max, :data_bytes_max::integer) as is_too_large,
         {{publish/publish.is_wide}} as is_wide,
         t.publish_rate_per_second
  from unnest(:event_ids::uuid[], :tenants::text[], :types::text[], :data_bytes::integer[], :public_ids::text[],
              :subjects::text[], :traceparents::text[], :shown_at::timestamptz[]) with ordinality
    as i (id, tenant_id, type, data_bytes, public_id, subject, traceparent, created_at, place)
  left join tenant t on t.id = i.tenant_id and t.status <> 'deleted'
),
version as materialized (
  select v.event_id, v.rank, v.id, v.name, v.body
  from unnest(:version_events::uuid[], :version_ranks::integer[], :version_ids::uuid[], :version_names::text[],
              :version_bodies::text[]) as v (event_id, rank, id, name, body)
),
target as materialized (
  select distinct on (i.id, e.id)
         i.id as main_id, i.place, i.tenant_id, i.is_wide, v.id as event_id, e.id as endpoint_id, e.bucket,
         e.ordering = 'strict' as is_strict,
         (left(replace(i.id::text, '-', ''), 20) || e.delivery_tail)::uuid as id
  from item i
  join unnest(:pattern_events::uuid[], :patterns::text[]) as p (event_id, pattern) on p.event_id = i.id
  join subscription s on s.tenant_id = i.tenant_id and s.pattern = p.pattern
  join endpoint e on e.id = s.endpoint_id
  join version v on v.event_id = i.id
                and case when s.versions is null then v.rank = 1 else v.name = any (s.versions) end
  where s.enabled
    and e.status in ('active', 'paused')
    and not i.is_unknown
    and not i.is_too_large
  order by i.id, e.id, s.versions is null, v.rank
),
new_event as (
  insert into event (id, tenant_id, public_id, type, version, subject, traceparent, body, created_at, main_id)
  select v.id, i.tenant_id,
         coalesce(i.public_id, case when v.rank > 1 then 'evt_' || replace(i.id::text, '-', '') end),
         i.type, v.name, i.subject, i.traceparent, v.body, i.created_at, i.id
  from item i
  join version v on v.event_id = i.id
  where not i.is_unknown
    and not i.is_too_large
),
new_task as (
  insert into fanout_task (event_id, tenant_id, type, version, created_at)
  select i.id, i.tenant_id, i.type, v.name, :created_at::timestamptz
  from item i
  join version v on v.event_id = i.id and v.rank = 1
  where i.is_wide
    and not i.is_too_large
),
matched as materialized (
  select t.main_id, t.event_id, t.place, t.tenant_id, t.endpoint_id, t.bucket, t.is_strict, t.id
  from target t
  where not t.is_wide
),
{{publish/publish.queue_matched}}
select i.id as event_id, {{publish/publish.result}} as result,
       case when i.is_wide then (select count(*) from target t where t.main_id = i.id) end as wide_deliveries,
       i.publish_rate_per_second, q.id as delivery_id, q.endpoint_id, q.bucket, q.position, q.event_id as version_id
from item i
left join matched m on m.main_id = i.id
left join queued q on q.id = m.id and q.bucket = m.bucket;
