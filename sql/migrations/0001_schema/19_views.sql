-- Views for people. Each has uuids, for indexes, and public IDs as text. None has secrets, custom headers or payloads.

-- Whether the caller sees what endpoints responded, which may repeat payloads: those who may read the table, and
-- postrider_support_payloads.
create view response_reader as
select has_table_privilege('attempt'::regclass, 'select')
       or exists (select from pg_roles r where r.rolname = 'postrider_support_payloads' and pg_has_role(r.oid, 'usage'))
         as sees_responses;

create view webhook_endpoints as
select e.id, e.public_id as endpoint, e.tenant_id, e.url, e.description, e.status, e.status_reason, e.status_since,
       e.status_by, e.held_reason, e.held_since,
       case when e.failing_since is null then 'healthy'
            when e.failing_since < now() - interval '60 hours' and tried.count >= 10 then 'unhealthy'
            else 'failing' end as health, e.failing_since,
       e.last_success_at, e.last_failure_at, e.breaker, e.last_probe_at, e.last_probe_error, e.max_attempts,
       e.timeout_ms, e.give_up_seconds, e.max_in_flight, e.rate_per_second, e.ordering, e.retry_schedule, e.on_rejected, e.signature, e.metadata,
       e.created_at, e.updated_at
from endpoint e
left join lateral (
  -- As attempts_since(): of the newest 100 attempts, and only for endpoints that may be unhealthy.
  select count(*)
  from (
    select a.started_at
    from attempt a
    where a.endpoint_id = e.id
      and a.attempt <> 0
      and e.failing_since < now() - interval '60 hours'
    order by a.delivery_id desc
    limit 100
  ) newest
  where newest.started_at >= e.failing_since
) tried on true;

create view webhook_subscriptions as
select s.endpoint_id, e.public_id as endpoint, s.tenant_id, s.pattern as event_type, s.enabled, s.versions, e.status,
       e.url, s.created_at
from subscription s
join endpoint e on e.id = s.endpoint_id;

create view webhook_events as
select e.id, coalesce(e.public_id, public_id_of('evt', e.id)) as event, e.tenant_id, e.type, e.version, e.subject,
       octet_length(e.body) as body_bytes, e.created_at, e.type as event_type, e.version as payload_version
from event e;

-- When a delivery expires: give_up_seconds after `since`, when its clock started, without the times in `paused`. Null if the
-- clock stands still until an open span ends. Owners of buckets decide by the same rule (delivery/attempt/expiry.cpp).
create function give_up_at(since timestamptz, give_up_seconds integer, paused tstzmultirange) returns timestamptz
language sql stable as $$
  select case when bool_or(upper_inf(counted.span)) then null
              else since + make_interval(secs => (give_up_seconds + coalesce(sum(counted.seconds), 0))::double precision) end
  from (
    select p.span, p.seconds,
           coalesce(sum(p.seconds) over (order by p.span rows between unbounded preceding and 1 preceding), 0) as seconds_before
    from (
      select span, extract(epoch from upper(span)) - extract(epoch from lower(span)) as seconds
      from unnest(paused * tstzmultirange(tstzrange(since, null))) as span
    ) p
  ) counted
  where extract(epoch from lower(counted.span)) - counted.seconds_before - give_up_seconds < extract(epoch from since)
$$;

-- What each delivery in the queue waits for, when it expires, and the next probe of its endpoint. Not for people:
-- webhook_deliveries has the same columns.
create view delivery_wait as
select q.bucket, q.id,
       case
         when b.is_paused then 'brake'
         when t.status = 'paused' then 'tenant_paused'
         when p.status = 'paused' then 'endpoint_paused'
         when p.held_since is not null then 'held'
         when q.due_at > now() then 'schedule'
         -- Retries from before the endpoint became strict go first. Two conditions, so that each is one look at queue_lane.
         when p.ordering = 'strict'
              and not q.retry
              and (exists (select from queue o
                           where o.bucket = q.bucket
                             and o.endpoint_id = q.endpoint_id
                             and not o.retry
                             and o.position < q.position)
                   or exists (select from queue o
                              where o.bucket = q.bucket
                                and o.endpoint_id = q.endpoint_id
                                and o.retry)) then 'strict_order'
         when p.breaker = 'open' then 'breaker'
         -- Only the owner of the bucket knows the rest.
         else (select w.reason
               from lane_wait w
               join bucket_lease l on l.bucket = w.bucket and l.epoch = w.epoch and l.owner is not null
               where w.endpoint_id = q.endpoint_id
                 and w.is_retry = q.retry)
       end as waiting_for,
       give_up_at(q.created_at, p.give_up_seconds,
                  (select range_agg(tstzrange(s.since, s.until))
                   from (
                     select since, until
                     from pause_span
                     where tenant_id = p.tenant_id
                       and (endpoint_id = p.id or endpoint_id is null)
                     union all
                     select since, until
                     from brake_span
                     union all
                     select p.held_since, null::timestamptz as until
                     where p.held_since is not null
                   ) s
                   where s.until is null or s.until > s.since)) as give_up_at,
       case when p.breaker = 'open' and p.status = 'active' and t.status = 'active' and p.held_since is null
                 and not b.is_paused then p.next_probe_at end as next_probe_at
from queue q
join endpoint p on p.id = q.endpoint_id
join tenant t on t.id = p.tenant_id
cross join brakes b;

-- Deliveries in the queue, and deliveries that ended: those have an attempt that is not followed by another.
-- The event is an aggregate, because an aggregate that is not selected is not computed, and one that is reads only the day of
-- its event; a plain join could read all events. A range of created_at reads the days that have some (attempt_by_time): the
-- ID does not show when a scheduled replay was created.
create view webhook_deliveries as
select q.id, q.tenant_id, q.endpoint_id, q.event_id, e.type as event_type, p.url,
       case when f.id is not null then 'processing' when q.attempts = 0 then 'pending' else 'retrying' end as status, q.attempts, p.max_attempts,
       q.due_at as next_attempt_at, public_id_of('node', l.owner) as claimed_by,
       last.started_at as last_attempt_at, last.status_code as last_status_code,
       coalesce(last.error_detail, last.error) as last_error, null::timestamptz as delivered_at, q.created_at,
       q.replay_id, public_id_of('dlv', q.id) as delivery, p.public_id as endpoint,
       coalesce(e.public_id, public_id_of('evt', q.event_id)) as event,
       e.version as payload_version,
       case when f.id is null
            then (select w.waiting_for from delivery_wait w where w.bucket = q.bucket and w.id = q.id) end as waiting_for,
       (select w.give_up_at from delivery_wait w where w.bucket = q.bucket and w.id = q.id) as give_up_at,
       (select w.next_probe_at from delivery_wait w where w.bucket = q.bucket and w.id = q.id) as next_probe_at
from bucket_lease l
join queue q on q.bucket = l.bucket
left join in_flight f on f.bucket = q.bucket and f.id = q.id
left join lateral (
  select min(e.type) as type, min(e.version) as version, min(e.public_id) as public_id
  from event e
  where e.id = q.event_id
) e on true
left join endpoint p on p.id = q.endpoint_id
left join lateral (
  select a.started_at, a.status_code, a.error, a.error_detail
  from attempt a
  where a.delivery_id = q.id
  order by a.started_at desc
  limit 1
) last on true
union all
select a.delivery_id, a.tenant_id, a.endpoint_id, a.event_id, e.type, p.url, a.outcome,
       case when a.attempt > 0 then a.attempt
            else (select max(b.attempt) from attempt b where b.delivery_id = a.delivery_id) end,
       p.max_attempts, null, null, a.started_at, a.status_code, coalesce(a.error_detail, a.error),
       case when a.outcome = 'delivered' then a.started_at + a.total_us * interval '1 microsecond' end, a.created_at,
       a.replay_id, public_id_of('dlv', a.delivery_id), p.public_id,
       coalesce(e.public_id, public_id_of('evt', a.event_id)), e.version, null, null, null
from attempt a
left join lateral (
  select min(e.type) as type, min(e.version) as version, min(e.public_id) as public_id
  from event e
  where e.id = a.event_id
) e on true
left join endpoint p on p.id = a.endpoint_id
where a.outcome <> 'retrying';

create view webhook_delivery_attempts as
select a.delivery_id, coalesce(a.probed_attempt, a.attempt) as attempt, a.tenant_id, a.endpoint_id, a.event_id, a.outcome, a.status_code, a.error,
       a.error_detail, a.started_at, a.lookup_us, a.connect_us, a.tls_us, a.first_byte_us, a.total_us,
       case when (select sees_responses from response_reader) then a.preview end as response_preview, a.address, a.next_attempt_at, a.node_id, a.created_at, a.replay_id,
       public_id_of('dlv', a.delivery_id) as delivery, p.public_id as endpoint,
       case when a.is_probe then 'probe' else 'attempt' end as kind, case when a.attempt < 0 then -a.attempt end as probe,
       a.started_at as attempted_at, round(a.total_us / 1000.0, 3) as duration_ms,
       (select e.type from event e where e.id = a.event_id) as event_type,
       case when a.url_version = p.url_version then p.url else u.url end as url,
       case when a.bytes_sent is not null then a.flags & 1 <> 0 end as connection_reused, a.flags & 2 <> 0 as is_resent,
       a.bytes_sent, a.bytes_received, a.content_type,
       case when (select sees_responses from response_reader) then a.response_headers end as response_headers,
       a.flags & 4 <> 0 as is_truncated, a.send_us
from attempt a
left join endpoint p on p.id = a.endpoint_id
left join former_url u on u.endpoint_id = a.endpoint_id and u.version = a.url_version;

create view webhook_dead_letters as
select d.delivery_id, d.tenant_id, d.endpoint_id, d.event_id, e.type as event_type, p.url, d.cause, d.attempts,
       d.status_code, d.error, d.error_detail, d.created_at, d.dead_at, d.resolved_at, d.resolution,
       public_id_of('dlv', d.delivery_id) as delivery, p.public_id as endpoint,
       coalesce(e.public_id, public_id_of('evt', d.event_id)) as event
from dead_letter d
left join event e on e.id = d.event_id
left join endpoint p on p.id = d.endpoint_id;

create view webhook_replay_requests as
select id as replay_id, delivery_id, requested_by, reason, created_at, tenant_id, kind, status, matched, queued,
       public_id_of('rpl', id) as replay, public_id_of('dlv', delivery_id) as delivery
from replay;

create view webhook_health as
select r.hour, r.tenant_id, kind.status, sum(kind.count)::bigint as delivery_count,
       round(sum(kind.attempts)::numeric / nullif(sum(kind.count), 0), 3) as avg_attempts,
       sum(kind.first_attempt_successes)::bigint as first_attempt_successes
from rollup r
cross join lateral (
  values ('delivered', r.delivered, r.delivered_attempts, r.first_attempt_successes),
         ('dead_letter', r.dead_letters, r.dead_letter_attempts, 0),
         ('canceled', r.canceled, 0, 0)
) as kind (status, count, attempts, first_attempt_successes)
where kind.count > 0
group by r.hour, r.tenant_id, kind.status;

-- ── the views are read-only ──────────────────────────────────────────────────────────────────────────────────────────

create function reject_view_change() returns trigger language plpgsql as $$
begin
  raise exception 'the view postrider.% is read-only', tg_table_name
    using errcode = 'object_not_in_prerequisite_state', hint = tg_argv[0];
end
$$;

-- The trigger for each statement also rejects one that finds no rows; Postgres requires the other one to get there.
do $$
declare
  v record;
begin
  for v in
    select *
    from (
      values ('webhook_endpoints', 'Call postrider.pause_endpoint(endpoint, reason) or postrider.resume_endpoint(endpoint, reason).'),
             ('webhook_subscriptions', 'Call postrider.pause_endpoint(endpoint, reason), or change subscriptions with the API.'),
             ('webhook_events', 'To send an event again, call postrider.replay_delivery(delivery, reason).'),
             ('webhook_deliveries', 'To send a delivery again, call postrider.replay_delivery(delivery, reason).'),
             ('webhook_delivery_attempts', 'To send a delivery again, call postrider.replay_delivery(delivery, reason).'),
             ('webhook_dead_letters', 'To send a dead letter again, call postrider.replay_delivery(delivery, reason).'),
             ('webhook_replay_requests', 'To request a replay, call postrider.replay_delivery(delivery, reason).'),
             ('webhook_outbox', 'To publish an event, call postrider.publish(tenant, type, data).'),
             ('webhook_health', 'It is computed from attempts. To send again, call postrider.replay_delivery(delivery, reason).')
    ) as views (name, hint)
  loop
    execute format('create trigger read_only before update or delete on %I for each statement
                    execute function reject_view_change(%L)', v.name, v.hint);
    execute format('create trigger read_only_row instead of update or delete on %I for each row
                    execute function reject_view_change(%L)', v.name, v.hint);
  end loop;
end
$$;
