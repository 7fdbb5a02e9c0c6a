-- Requests that were rejected.

-- name: add_rejections
-- The arrays go together, in the order of source and reason. Skips sources that were deleted. Primary key; locks the rows in
-- order.
insert into source_rejection (source_id, reason, count, last_at, last_detail)
select g.source_id, g.reason, g.count, g.last_at, g.last_detail
from unnest(:sources::text[], :reasons::text[], :counts::bigint[], :times::timestamptz[], :details::text[])
  as g (source_id, reason, count, last_at, last_detail)
join source s on s.id = g.source_id
order by g.source_id collate "C", g.reason collate "C"
on conflict (source_id, reason) do update
set
  count = source_rejection.count + excluded.count,
  last_at = excluded.last_at,
  last_detail = excluded.last_detail
