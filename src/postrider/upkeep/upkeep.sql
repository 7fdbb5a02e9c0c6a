-- Maintenance of the database. Every node with the upkeep role runs these; all are safe to run twice.

-- name: missing_partitions
-- not null: all
select parent, day::text as day
from unnest(array['event', 'attempt', 'dead_letter', 'inbox']) as parent,
     lateral (
       select (now() at time zone 'UTC')::date + offset_days as day
       from generate_series(-:days_back::int, :days_ahead::int) as offset_days
     ) as days
where to_regclass('postrider.' || parent || '_' || to_char(day, 'YYYYMMDD')) is null
order by day, parent

-- name: create_partition
-- One at a time, each in its own transaction, so that locks are short. The session has a lock_timeout. False: it exists.
-- not null: all
select create_partition(:parent::text, :day::text::date) as is_new

-- name: trim_publish_log
-- A follower that was disconnected for longer reads all its buckets again; it decides so well before these 15 minutes.
delete from publish_log
where at < now() - interval '15 minutes'

-- name: trim_control_log
delete from control_log
where at < now() - interval '7 days'

-- name: trim_contact_links
-- Expired links of mails to contacts. Index contact_token_by_expiry.
delete from contact_token
where expires_at < now()

-- name: trim_lane_waits
-- What nodes left behind that lost a bucket. Scans lane_wait, which is small.
delete from lane_wait w
using bucket_lease l
where l.bucket = w.bucket
  and l.epoch > w.epoch

-- name: trim_mail_budgets
-- The caps count the last 30 days. Scans mail_budget, which is small.
delete from mail_budget
where day < (now() at time zone 'UTC')::date - 31

-- name: forget_dead_nodes
-- Not at once: the slot of a node is part of the IDs that it creates. Another node must not get it while the old process may
-- still resume.
delete from node
where not alive
  and heartbeat_at < now() - interval '1 hour'

-- name: queue_depth
-- An estimate from the statistics, because counting would scan the table. The 5,000 sentinel rows are not deliveries.
-- not null: all
select greatest(n_live_tup - 5000, 0)::bigint as deliveries
from pg_stat_user_tables
where relid = 'postrider.queue'::regclass

-- name: endpoints_by_status
-- not null: all
select status, count(*) as endpoints
from endpoint
where status <> 'deleted'
group by status

-- name: stale_statistics
-- Autovacuum never analyzes a partitioned parent.
-- not null: all
select relname
from pg_stat_user_tables
where schemaname = 'postrider'
  and relname in ('event', 'attempt', 'dead_letter', 'inbox')
  and coalesce(last_analyze, '-infinity') < now() - interval '1 day'

-- name: summarize_ended_days
-- Completes attempt_by_time for the days that have ended, so that a time range skips them. Vacuum leaves out the end of a
-- table, and without autovacuum nothing is summarized. Cheap when there is nothing to do.
-- not null: all
select coalesce(sum(brin_summarize_new_values(i.inhrelid)), 0)::bigint as page_ranges
from pg_inherits i
join pg_index x on x.indexrelid = i.inhrelid
join pg_class t on t.oid = x.indrelid
where i.inhparent in (
    select p.inhrelid
    from pg_inherits p
    where p.inhparent = 'attempt_by_time'::regclass
  )
  and t.relname < 'attempt_' || to_char(now() at time zone 'UTC', 'YYYYMMDD')

-- name: hours_to_close
-- Hours with rollups that ended ten minutes ago, so that every attempt that started in them has been written; without the
-- `postponed` ones. Index: the key.
-- not null: all
select distinct r.hour
from rollup r
where r.hour < date_trunc('hour', now() - interval '10 minutes')
  and r.hour > now() - interval '7 days'
  and r.hour <> all (:postponed::timestamptz[])
  and not exists (select from rollup_closed c where c.hour = r.hour)
order by r.hour
limit 24

-- name: close_hour
-- Computes an hour again from its attempts, which are found by attempt_by_time, and closes it. Replaces the rows that the
-- nodes have written. If two nodes do it, the second finds it closed.
with closing as (
  insert into rollup_closed (hour)
  values (:hour::timestamptz)
  on conflict (hour) do nothing
  returning hour
),
gone as (
  delete from rollup
  using closing
  where rollup.hour = closing.hour
)
insert into rollup (hour, tenant_id, endpoint_id, event_type, node_id, delivered, delivered_attempts,
                    first_attempt_successes, retried, dead_letters, dead_letter_attempts, canceled, exchanges,
                    latency_us, latency_us_max)
select :hour, a.tenant_id, a.endpoint_id, coalesce(e.type, ''), '00000000-0000-0000-0000-000000000000',
       count(*) filter (where a.outcome = 'delivered'),
       coalesce(sum(a.attempt) filter (where a.outcome = 'delivered'), 0),
       count(*) filter (where a.outcome = 'delivered' and a.attempt = 1),
       count(*) filter (where a.outcome = 'retrying'),
       count(*) filter (where a.outcome = 'dead_letter'),
       coalesce(sum(a.attempt) filter (where a.outcome = 'dead_letter'), 0),
       count(*) filter (where a.outcome = 'canceled'),
       count(*) filter (where a.attempt <> 0) + count(*) filter (where a.flags & 2 <> 0),
       coalesce(sum(a.total_us) filter (where a.attempt <> 0), 0),
       coalesce(max(a.total_us) filter (where a.attempt <> 0), 0)
from attempt a
left join event e on e.id = a.event_id
                 and e.id >= id_floor(:hour - interval '4 days')
where a.started_at >= :hour
  and a.started_at < :hour + interval '1 hour'
  and exists (select from closing)
group by a.tenant_id, a.endpoint_id, coalesce(e.type, '')

-- name: add_up_dead_letters
-- Adds the changes of the counts to the counts. One node at a time: the others find the row locked and do nothing.
with turn as materialized (
  select name
  from session_lease
  where name = 'dead_letter_count'
  for update skip locked
),
taken as (
  delete from dead_letter_delta
  where exists (select from turn)
  returning tenant_id, endpoint_id, cause, unresolved
)
insert into dead_letter_count as c (tenant_id, endpoint_id, cause, unresolved)
select tenant_id, endpoint_id, cause, sum(unresolved)
from taken
group by tenant_id, endpoint_id, cause
on conflict (tenant_id, endpoint_id, cause) do update
set unresolved = c.unresolved + excluded.unresolved
