-- Telling a tenant's contacts. A notice is claimed for an hour and the endpoint is marked as told before anything is
-- sent, so that no crash and no second node can make it two within the hour.

-- name: take_notice
-- The one that waits longest. Index notice_by_due. Locks the notice; one that somebody else has is left.
with due as (
  select endpoint_id
  from notice
  where due_at <= now()
  order by due_at
  limit 1
  for update skip locked
),
taken as (
  update notice n
  set due_at = now() + interval '1 hour',
      tries = n.tries + 1
  from due
  where n.endpoint_id = due.endpoint_id
  returning n.endpoint_id, n.tenant_id, n.kind, n.stage, n.failing_since, n.detail, n.contacts, n.tries
),
told as (
  update endpoint e
  set told_at = now()
  from taken t
  where e.id = t.endpoint_id
  returning e.id, e.outside_id, e.url
)
select t.endpoint_id, t.tenant_id, e.outside_id, e.url, t.kind, t.stage, t.failing_since, t.detail, t.contacts::text,
       t.tries
from taken t
join told e on e.id = t.endpoint_id

-- name: finish_notice
-- $1 endpoint, $2 stage, $3 contacts that could not be told (an empty array: it is done), $4 seconds until they are tried
-- again. A newer notice that took its place meanwhile stays as it is.
with done as (
  delete from notice
  where endpoint_id = $1::uuid
    and stage = $2::integer
    and $3::jsonb = '[]'
),
again as (
  update notice
  set contacts = $3::jsonb,
      due_at = now() + make_interval(secs => $4::integer)
  where endpoint_id = $1::uuid
    and stage = $2::integer
    and $3::jsonb <> '[]'
)
update endpoint
set told = $2::integer
where id = $1::uuid

-- name: contact_secret
-- $1 tenant
select sealed
from contact_secret
where tenant_id = $1::text
