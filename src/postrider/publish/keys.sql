-- The keys that make publishing repeatable: a publisher's event id (kind id) and Idempotency-Key (kind key).
-- All arrays are sorted by (tenant_id, kind, key) in byte order, so that two publishers never wait crosswise.

-- name: known_tenants
-- $1 tenant ids; returns those that can be published to. Index: tenant_pkey.
select t.id
from tenant t
where t.id = any ($1::text[])
  and t.status <> 'deleted';

-- name: take_keys
-- $1 tenant, $2 kind, $3 key, $4 event id, $5 hash of the request. Returns the keys that were free. Waits for
-- transactions that are taking the same keys; whoever lost reads them in a statement, and so a snapshot, of
-- its own. Locks: the new rows, in order.
insert into event_key (tenant_id, kind, key, event_id, request_hash, answer)
select k.tenant_id, k.kind, k.key, k.event_id, k.request_hash, ''
from unnest($1::text[], $2::text[], $3::text[], $4::uuid[], $5::bytea[])
  as k (tenant_id, kind, key, event_id, request_hash)
join tenant t on t.id = k.tenant_id
where t.status <> 'deleted'
order by k.tenant_id collate "C", k.kind collate "C", k.key collate "C"
on conflict do nothing
returning event_id, kind;

-- name: read_keys
-- $1 tenant, $2 kind, $3 key. Returns the place in the arrays and what was stored. Index: event_key_pkey.
select k.place::integer, e.event_id, e.request_hash, e.answer
from unnest($1::text[], $2::text[], $3::text[]) with ordinality as k (tenant_id, kind, key, place)
join event_key e on e.tenant_id = k.tenant_id and e.kind = k.kind and e.key = k.key;

-- name: release_keys
-- $1 tenant, $2 kind, $3 key, $4 event id: keys taken in this transaction for events that will not be.
delete from event_key e
using unnest($1::text[], $2::text[], $3::text[], $4::uuid[]) as k (tenant_id, kind, key, event_id)
where e.tenant_id = k.tenant_id
  and e.kind = k.kind
  and e.key = k.key
  and e.event_id = k.event_id;

-- name: free_hollow_keys
-- $1 tenant, $2 kind, $3 key: keys that were committed without an answer, and so without an event.
delete from event_key e
using unnest($1::text[], $2::text[], $3::text[]) as k (tenant_id, kind, key)
where e.tenant_id = k.tenant_id
  and e.kind = k.kind
  and e.key = k.key
  and e.answer = '';

-- name: keep_answers
-- $1 tenant, $2 kind, $3 key, $4 the answer that a repeated request gets again. Rows taken in this transaction.
update event_key e
set answer = k.answer
from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as k (tenant_id, kind, key, answer)
where e.tenant_id = k.tenant_id
  and e.kind = k.kind
  and e.key = k.key;
