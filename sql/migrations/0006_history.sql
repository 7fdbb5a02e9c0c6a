-- History: what lists, searches and people who write SQL read.

-- ── indexes ────────────────────────────────────────────────────────────────────────────────────────────────────

-- Partial ones, so that the usual delivery pays only for looking at the condition.
create index attempt_canceled on attempt (delivery_id) where outcome = 'canceled';
create index attempt_replayed on attempt (event_id, delivery_id) where replay_id is not null;
create index queue_replayed on queue (event_id, id) where replay_id is not null;

-- "Everything about in_123": paid for by the events that have a subject only.
create index event_by_subject on event (subject, tenant_id, id) where subject is not null;

-- Ids given without a tenant.
create index endpoint_by_name on endpoint (outside_id);
