-- Around publishing: results that were lost, partitions and tenants that are missing.

-- name: recall
-- After a lost connection: which events of the batch were committed, and how many deliveries each has (by the current
-- subscriptions, since what was delivered has left the queue).
--   :first_id, :last_id  smallest and largest of :event_ids
--   :pattern_events …    each pattern that matches the type of each event
-- Indexes: the key of the event's partition, subscription_pkey, endpoint_pkey.
-- not null: all
select e.id,
       (select count(distinct d.id)
        from unnest(:pattern_events::uuid[], :pattern_tenants::text[], :patterns::text[], :pattern_versions::text[])
          as p (event_id, tenant_id, pattern, version)
        join subscription s on s.tenant_id = p.tenant_id and s.pattern = p.pattern
        join endpoint d on d.id = s.endpoint_id
        where p.event_id = e.id
          and s.enabled
          and (s.versions is null or p.version = any (s.versions))
          and d.status in ('active', 'paused')) as deliveries
from event e
where e.id = any (:event_ids::uuid[])
  and e.id >= :first_id::uuid
  and e.id <= :last_id::uuid;

-- name: log_unknown
-- Deliveries with these IDs may have been committed without a handoff: a line in the log that belongs to no node makes
-- every owner look.
insert into publish_log (node_id, first_id, last_id, buckets)
select '00000000-0000-0000-0000-000000000000', :first_id::uuid, :last_id::uuid, array_agg(l.bucket order by l.bucket)
from bucket_lease l;

-- name: log_unknown_commit
-- As log_unknown, for a transaction whose connection was lost, if :notify or if it has ended.
--   :pids, :started_at  the backends that may still work on it
--   :is_pooled          they are not known: it may be any transaction of this role that began before :since, which is the
--                       time of the first look
-- Returns whether it may still commit, and the time.
-- not null: all
with backend as materialized (
  select exists (
    select from pg_stat_activity a
    where a.datname = current_database()
      and a.pid <> pg_backend_pid()
      and (exists (select from unnest(:pids::integer[], :started_at::timestamptz[]) as b (pid, started_at)
                   where b.pid = a.pid and b.started_at = a.backend_start)
           or (:is_pooled::boolean and a.usename = current_user
               and a.xact_start <= coalesce(:since?::timestamptz, now())))) as may_commit
),
logged as (
  insert into publish_log (node_id, first_id, last_id, buckets)
  select '00000000-0000-0000-0000-000000000000', :first_id::uuid, :last_id::uuid, array_agg(l.bucket order by l.bucket)
  from bucket_lease l
  having :notify::boolean or not (select b.may_commit from backend b)
)
select b.may_commit, now() as looked_at
from backend b;

-- name: limit_lock_wait
-- For this transaction only: better create a partition a moment later than keep everyone waiting.
select set_config('lock_timeout', '2s', true) as lock_timeout;

-- name: make_event_partition
-- :id found no partition.
select create_partition('event', (id_time(:id::uuid) at time zone 'UTC')::date) as made;

-- name: create_tenants
-- :tenants sorted. A deleted tenant stays deleted. Audited: the tenant was created by publishing to it.
with made as (
  insert into tenant (id, status_by)
  select t.id, 'postrider'
  from unnest(:tenants::text[]) as t (id)
  order by t.id collate "C"
  on conflict (id) do nothing
  returning id
)
select write_audit('system', 'system', 'tenant.create', m.id, m.id, reason => 'published to') as audit_id,
       record_change('tenant', m.id) as change_id
from made m;
