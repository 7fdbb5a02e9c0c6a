-- Rows of an outbox in another database that were processed and are still kept.

-- name: processed_rows
-- After (:after_time, :after_id): rows written from :since on and before :until, of one tenant or all, :rows_max at most.
-- Index: outbox_processed.
-- not null: id, processed_at
select o.id, o.processed_at, left(o.tenant_id, 300) as tenant_id,
       coalesce(left(o.public_id, 300), 'evt_' || replace(o.event_id::text, '-', '')) as public_id
from outbox o
where o.processed_at is not null
  and (o.processed_at, o.id) > (:after_time::timestamptz, :after_id::bigint)
  and o.created_at >= :since::timestamptz
  and o.created_at < :until::timestamptz
  and (:tenant?::text is null or o.tenant_id = :tenant)
order by o.processed_at, o.id
limit :rows_max::integer;

-- name: process_again
-- As if they had been written now, so that the relay finds them in its next window.
update outbox
set processed_at = null,
    xid = pg_current_xact_id(),
    attempts = 0,
    last_error = null,
    retry_at = null
where id = any (:ids::bigint[])
  and processed_at is not null;
