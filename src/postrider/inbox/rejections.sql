-- What was refused at the door.

-- name: add_rejections
-- $1 source, $2 reason, $3 count, $4 last time, $5 last detail: arrays in order of source and reason. Sources that are
-- gone are left out. Primary key; locks the rows in order.
insert into source_rejection (source_id, reason, count, last_at, last_detail)
select g.source_id, g.reason, g.count, g.last_at, g.last_detail
from unnest($1::text[], $2::text[], $3::bigint[], $4::timestamptz[], $5::text[])
  as g (source_id, reason, count, last_at, last_detail)
join source s on s.id = g.source_id
order by g.source_id collate "C", g.reason collate "C"
on conflict (source_id, reason) do update
set
  count = source_rejection.count + excluded.count,
  last_at = excluded.last_at,
  last_detail = excluded.last_detail
