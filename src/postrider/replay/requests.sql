-- Requesting replays and reading them. Runs on connections with custom plans.

-- name: create_replay
-- Replays one delivery, at `due_at` or now (null); a key may create at most `per_second_max` of these. `actor` is customer
-- or operator. Returns one row: the outcome, the replay and the new delivery. Locks: see the function.
-- not null: outcome
select m.outcome, m.replay_id, m.delivery_id
from create_replay(:tenant::text, :delivery::uuid, :reason::text, :requested_by::text,
                 coalesce(:due_at?::timestamptz, now()), :per_second_max::integer, on_behalf_of => :actor::text) as m

-- name: insert_replay
-- `actor` is customer or operator. The next node that polls works on the row.
-- not null: all
insert into replay (id, tenant_id, kind, status, scope, endpoint_id, event_types, causes, delivery_ids, since, until,
                    rate_per_second, reason, requested_by, on_behalf_of)
values (new_id(), :tenant::text, 'range', 'queued', :scope::text, :endpoint?::uuid, :event_types?::text[],
        :causes?::text[], :deliveries?::uuid[], :since::timestamptz, :until::timestamptz, :rate_per_second::float8,
        :reason::text, :requested_by::text, :actor::text)
returning id

-- part: shown_replay
select r.id, r.kind, r.status, r.scope, e.public_id as endpoint_public_id, r.event_types, r.since, r.until,
       r.rate_per_second, r.reason, r.requested_by, r.on_behalf_of, r.delivery_id, r.is_counted, r.matched, r.queued,
       p.delivered, p.failed, p.canceled, r.created_at, r.started_at, r.finished_at

-- part: with_progress
left join endpoint e on e.id = r.endpoint_id
cross join lateral (
  select coalesce(sum(c.delivered), 0)::bigint as delivered,
         coalesce(sum(c.failed), 0)::bigint as failed,
         coalesce(sum(c.canceled), 0)::bigint as canceled
  from replay_progress c
  where c.replay_id = r.id
) as p

-- name: find_replay
-- Primary keys of replay and replay_progress.
-- not null: id, kind, status, reason, requested_by, on_behalf_of, is_counted, matched, queued, delivered, failed, canceled, created_at
-- row: replay
{{shown_replay}}
from replay r
{{with_progress}}
where r.tenant_id = :tenant::text
  and r.id = :replay::uuid

-- name: list_replays
-- Newest first. Index replay_by_tenant.
-- not null: id, kind, status, reason, requested_by, on_behalf_of, is_counted, matched, queued, delivered, failed, canceled, created_at
-- row: replay
{{shown_replay}}
from (
  select *
  from replay
  where tenant_id = :tenant::text
    and id < :before::uuid
    and (:status?::text is null or status = :status)
  order by id desc
  limit :rows::integer
) as r
{{with_progress}}
order by r.id desc

-- name: cancel_replay
-- No row: it has ended, or is not this tenant's. Waits for the chunk that is being written.
-- not null: all
update replay
set status = 'canceled',
    finished_at = now(),
    runner = null
where tenant_id = :tenant::text
  and id = :replay::uuid
  and status in ('queued', 'running')
returning id

-- name: find_endpoint
-- Index endpoint_by_tenant.
-- not null: all
select id, status
from endpoint
where tenant_id = :tenant::text
  and public_id = :public_id::text
  and status <> 'deleted'
