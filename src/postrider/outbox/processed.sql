-- Rows of an outbox in another database that were processed and are still kept.

-- name: processed_rows
-- After ($4 processed_at, $5 id): rows written from $1 on and before $2, of tenant $3 or all, $6 at most. Index:
-- outbox_processed.
select o.id, o.processed_at, left(o.tenant_id, 300),
       coalesce(left(o.public_id, 300), 'evt_' || replace(o.event_id::text, '-', ''))
from outbox o
where o.processed_at is not null
  and (o.processed_at, o.id) > ($4::timestamptz, $5::bigint)
  and o.created_at >= $1::timestamptz
  and o.created_at < $2::timestamptz
  and ($3::text is null or o.tenant_id = $3)
order by o.processed_at, o.id
limit $6::integer;

-- name: process_again
-- $1 ids. As if they had been written now, so that the relay finds them in its next window.
update outbox
set processed_at = null,
    xid = pg_current_xact_id(),
    attempts = 0,
    last_error = null,
    retry_at = null
where id = any ($1::bigint[])
  and processed_at is not null;
