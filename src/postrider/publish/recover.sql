-- Around publishing: what was cut off in the middle, what is missing.

-- name: recall
-- After a lost connection: which events of the batch were committed, and how many deliveries each has (by the
-- subscriptions of now; what was delivered since has left the queue).
--   $1 event ids, $2 first and $3 last of them
--   $4 event id, $5 tenant, $6 pattern, $7 version: each pattern that matches the type of each event
-- Indexes: the key of the event's partition, subscription_pkey, endpoint_pkey.
select e.id,
       (select count(distinct d.id)
        from unnest($4::uuid[], $5::text[], $6::text[], $7::text[]) as p (event_id, tenant_id, pattern, version)
        join subscription s on s.tenant_id = p.tenant_id and s.pattern = p.pattern
        join endpoint d on d.id = s.endpoint_id
        where p.event_id = e.id
          and s.enabled
          and (s.versions is null or p.version = any (s.versions))
          and d.status in ('active', 'paused')) as deliveries
from event e
where e.id = any ($1::uuid[])
  and e.id >= $2::uuid
  and e.id <= $3::uuid;

-- name: log_unsure
-- Deliveries with ids from $1 to $2 may have been committed without anybody having handed them over: a line
-- in the log that belongs to no node makes every owner look.
insert into publish_log (node_id, first_id, last_id, buckets)
select '00000000-0000-0000-0000-000000000000', $1::uuid, $2::uuid, array_agg(l.bucket order by l.bucket)
from bucket_lease l;

-- name: limit_lock_wait
-- For this transaction only: a partition is better made a moment later than everybody kept waiting.
select set_config('lock_timeout', '2s', true);

-- name: make_event_partition
-- $1 an id that found no partition.
select make_partition('event', (id_time($1::uuid) at time zone 'UTC')::date);

-- name: create_tenants
-- $1 tenant ids, sorted. A deleted tenant stays deleted. Audited: nobody asked for the tenant, publishing made it.
with made as (
  insert into tenant (id, status_by)
  select t.id, 'postrider'
  from unnest($1::text[]) as t (id)
  order by t.id collate "C"
  on conflict (id) do nothing
  returning id
)
select write_audit('system', 'system', 'tenant.create', m.id, m.id, reason => 'published to'),
       note_change('tenant', m.id)
from made m;
