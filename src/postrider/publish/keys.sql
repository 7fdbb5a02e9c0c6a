-- The keys that make publishing repeatable: a publisher's event ID (kind id) and Idempotency-Key (kind key).
-- All arrays are sorted by (tenant_id, kind, key) in byte order, so that two publishers never wait crosswise.

-- part: keys
unnest(:tenants::text[], :kinds::text[], :keys::text[])

-- part: is_key
e.tenant_id = k.tenant_id
  and e.kind = k.kind
  and e.key = k.key

-- name: known_tenants
-- Those that can be published to. Index: tenant_pkey.
-- not null: all
select t.id
from tenant t
where t.id = any (:tenants::text[])
  and t.status <> 'deleted';

-- name: take_keys
-- Takes the keys for events and returns those that were free. Waits for transactions that are taking the same keys; the
-- keys that were lost are read by a statement, and so in a snapshot, of its own. Locks: the new rows, in order.
-- not null: all
insert into event_key (tenant_id, kind, key, event_id, request_hash, response)
select k.tenant_id, k.kind, k.key, k.event_id, k.request_hash, ''
from unnest(:tenants::text[], :kinds::text[], :keys::text[], :event_ids::uuid[], :request_hashes::bytea[])
  as k (tenant_id, kind, key, event_id, request_hash)
join tenant t on t.id = k.tenant_id
where t.status <> 'deleted'
order by k.tenant_id collate "C", k.kind collate "C", k.key collate "C"
on conflict do nothing
returning event_id, kind;

-- name: read_keys
-- Returns the place of each key in the arrays, from 1, and the stored values. Index: event_key_pkey.
-- not null: all
select k.place::integer as place, e.event_id, e.request_hash, e.response
from {{keys}} with ordinality as k (tenant_id, kind, key, place)
join event_key e on {{is_key}};

-- name: release_keys
-- Keys taken in this transaction for events that are not written.
delete from event_key e
using unnest(:tenants::text[], :kinds::text[], :keys::text[], :event_ids::uuid[]) as k (tenant_id, kind, key, event_id)
where {{is_key}}
  and e.event_id = k.event_id;

-- name: free_orphaned_keys
-- Keys that were committed without a response, and so without an event.
delete from event_key e
using {{keys}} as k (tenant_id, kind, key)
where {{is_key}}
  and e.response = '';

-- name: keep_responses
-- The response that a repeated request gets again. Rows taken in this transaction.
update event_key e
set response = k.response
from unnest(:tenants::text[], :kinds::text[], :keys::text[], :responses::text[]) as k (tenant_id, kind, key, response)
where {{is_key}};
