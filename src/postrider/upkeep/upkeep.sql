-- What keeps the database in shape. Every node with the upkeep role runs these; all are safe to run twice.

-- name: missing_partitions
-- $1 days back, $2 days ahead
select parent, day::text
from unnest(array['event', 'attempt', 'dead_letter', 'inbox']) as parent,
     lateral (
       select (now() at time zone 'UTC')::date + offset_days as day
       from generate_series(-$1::int, $2::int) as offset_days
     ) as days
where to_regclass('postrider.' || parent || '_' || to_char(day, 'YYYYMMDD')) is null
order by day, parent

-- name: make_partition
-- One at a time, each its own transaction, so that locks are short. The session has a lock_timeout.
-- $1 parent, $2 day
select make_partition($1::text, $2::text::date)

-- name: trim_publish_log
-- Readers that were away for longer look at all their buckets again (LogFollower::kAwayMax is well below).
delete from publish_log
where at < now() - interval '15 minutes'

-- name: trim_control_log
delete from control_log
where at < now() - interval '7 days'

-- name: trim_contact_links
-- Expired links of mails to contacts. Index contact_token_by_expiry.
delete from contact_token
where expires_at < now()

-- name: trim_mail_budgets
-- The caps look 30 days back. Scans mail_budget, which is small.
delete from mail_budget
where day < (now() at time zone 'UTC')::date - 31

-- name: forget_dead_nodes
-- Not at once: a slot is part of ids and must not go to another node while an old one may still wake up.
delete from node
where not alive
  and heartbeat_at < now() - interval '1 hour'

-- name: queue_depth
-- An estimate from the statistics collector: counting would scan. 5,000 sentinels are not deliveries.
select greatest(n_live_tup - 5000, 0)::bigint
from pg_stat_user_tables
where relid = 'postrider.queue'::regclass

-- name: endpoints_by_status
select status, count(*)
from endpoint
where status <> 'deleted'
group by status

-- name: stale_statistics
-- Autovacuum never analyzes a partitioned parent.
select relname
from pg_stat_user_tables
where schemaname = 'postrider'
  and relname in ('event', 'attempt', 'dead_letter', 'inbox')
  and coalesce(last_analyze, '-infinity') < now() - interval '1 day'

-- name: hours_to_close
-- Hours with rollups that are over for ten minutes: what began in them has ended and was written. Index: the key.
-- $1 but for these.
select distinct r.hour
from rollup r
where r.hour < date_trunc('hour', now() - interval '10 minutes')
  and r.hour > now() - interval '7 days'
  and r.hour <> all ($1::timestamptz[])
  and not exists (select from rollup_closed c where c.hour = r.hour)
order by r.hour
limit 24

-- name: close_hour
-- Computes an hour anew from its attempts, which are found by attempt_by_time, and closes it; the rows that nodes had
-- written go. Two nodes: the second finds it closed. $1 hour
with closing as (
  insert into rollup_closed (hour)
  values ($1::timestamptz)
  on conflict (hour) do nothing
  returning hour
),
gone as (
  delete from rollup
  using closing
  where rollup.hour = closing.hour
)
insert into rollup (hour, tenant_id, endpoint_id, event_type, node_id, delivered, delivered_attempts,
                    first_attempt_successes, retried, dead, dead_attempts, canceled, exchanges, latency_us,
                    latency_us_max)
select $1::timestamptz, a.tenant_id, a.endpoint_id, coalesce(e.type, ''), '00000000-0000-0000-0000-000000000000',
       count(*) filter (where a.outcome = 'delivered'),
       coalesce(sum(a.attempt) filter (where a.outcome = 'delivered'), 0),
       count(*) filter (where a.outcome = 'delivered' and a.attempt = 1),
       count(*) filter (where a.outcome = 'retrying'),
       count(*) filter (where a.outcome = 'dead_letter'),
       coalesce(sum(a.attempt) filter (where a.outcome = 'dead_letter'), 0),
       count(*) filter (where a.outcome = 'canceled'),
       count(*) filter (where a.attempt > 0),
       coalesce(sum(a.total_us) filter (where a.attempt > 0), 0),
       coalesce(max(a.total_us) filter (where a.attempt > 0), 0)
from attempt a
left join event e on e.id = a.event_id
                 and e.id >= id_floor($1::timestamptz - interval '4 days')
where a.started_at >= $1::timestamptz
  and a.started_at < $1::timestamptz + interval '1 hour'
  and exists (select from closing)
group by a.tenant_id, a.endpoint_id, coalesce(e.type, '')

-- name: add_up_dead_letters
-- Changes of the counts move into the counts. One node at a time: the others find the row locked and do nothing.
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
