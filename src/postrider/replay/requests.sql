-- Asking for replays and looking at them. Runs on connections with custom plans.

-- name: make_replay
-- $1 tenant, $2 delivery, $3 reason, $4 who, $5 when it may be sent, null for now, $6 how many of these a key may make
-- per second, $7 customer or operator. Returns one row: the outcome, the replay and the new delivery. Locks: see the
-- function.
select m.outcome, m.replay_id, m.delivery_id
from make_replay($1::text, $2::uuid, $3::text, $4::text, coalesce($5::timestamptz, now()), $6::integer,
                 on_behalf_of => $7::text) as m

-- name: insert_replay
-- $1 tenant, $2 scope, $3 endpoint, $4 types, $5 causes, $6 dead letters, $7 since, $8 until, $9 rate, $10 reason,
-- $11 who, $12 customer or operator. The next node that looks works on the row.
insert into replay (id, tenant_id, kind, status, scope, endpoint_id, event_types, causes, delivery_ids, since, until,
                    rate_per_second, reason, requested_by, on_behalf_of)
values (make_id(), $1::text, 'range', 'queued', $2::text, $3::uuid, $4::text[], $5::text[], $6::uuid[],
        $7::timestamptz, $8::timestamptz, $9::float8, $10::text, $11::text, $12::text)
returning id

-- name: find_replay
-- $1 tenant, $2 replay. Primary keys of replay and replay_progress.
select r.id, r.kind, r.status, r.scope, e.public_id, r.event_types, r.since, r.until, r.rate_per_second, r.reason,
       r.requested_by, r.on_behalf_of, r.delivery_id, r.is_counted, r.matched, r.queued, p.delivered, p.failed, p.canceled,
       r.created_at, r.started_at, r.finished_at
from replay r
left join endpoint e on e.id = r.endpoint_id
cross join lateral (
  select coalesce(sum(c.delivered), 0)::bigint as delivered,
         coalesce(sum(c.failed), 0)::bigint as failed,
         coalesce(sum(c.canceled), 0)::bigint as canceled
  from replay_progress c
  where c.replay_id = r.id
) as p
where r.tenant_id = $1::text
  and r.id = $2::uuid

-- name: list_replays
-- The newest first: $1 tenant, $2 ids below this one, $3 status or null, $4 how many. Index replay_by_tenant.
select r.id, r.kind, r.status, r.scope, e.public_id, r.event_types, r.since, r.until, r.rate_per_second, r.reason,
       r.requested_by, r.on_behalf_of, r.delivery_id, r.is_counted, r.matched, r.queued, p.delivered, p.failed, p.canceled,
       r.created_at, r.started_at, r.finished_at
from (
  select *
  from replay
  where tenant_id = $1::text
    and id < $2::uuid
    and ($3::text is null or status = $3)
  order by id desc
  limit $4::integer
) as r
left join endpoint e on e.id = r.endpoint_id
cross join lateral (
  select coalesce(sum(c.delivered), 0)::bigint as delivered,
         coalesce(sum(c.failed), 0)::bigint as failed,
         coalesce(sum(c.canceled), 0)::bigint as canceled
  from replay_progress c
  where c.replay_id = r.id
) as p
order by r.id desc

-- name: cancel_replay
-- $1 tenant, $2 replay. Zero rows: it is over, or not this tenant's. Waits for the chunk that is being written.
update replay
set status = 'canceled',
    finished_at = now(),
    runner = null
where tenant_id = $1::text
  and id = $2::uuid
  and status in ('queued', 'running')
returning id

-- name: find_endpoint
-- $1 tenant, $2 the id as callers know it. Index endpoint_by_public_id.
select id, status
from endpoint
where tenant_id = $1::text
  and public_id = $2::text
  and status <> 'deleted'
