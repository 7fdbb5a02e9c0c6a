-- name: search
-- `event` and `delivery` are the uuids in `text`, if it is a public ID of that kind. Returns at most `rows` of each kind.
-- Indexes: keys, event_by_subject, endpoint_by_public_id, endpoint_by_host, event_key_pkey per tenant.
-- not null: kind, id, tenant_id
select 'tenant' as kind, t.id as id, t.id as tenant_id, t.name as about
from tenant t
where t.id = :text::text
union all
(select 'endpoint', e.public_id, e.tenant_id, e.url
 from endpoint e
 where e.public_id = :text
 limit :rows::integer)
union all
(select 'endpoint', e.public_id, e.tenant_id, e.url
 from endpoint e
 where substring(e.url from '://([^/:?#]+)') = lower(:text)
   and e.status <> 'deleted'
 order by e.id
 limit :rows)
union all
(select 'event', coalesce(e.public_id, public_id_of('evt', e.id)), e.tenant_id, e.type
 from event e
 where e.id = :event?::uuid)
union all
(select 'event', k.key, k.tenant_id, e.type
 from tenant t
 join event_key k on k.tenant_id = t.id and k.kind = 'id' and k.key = :text
 join event e on e.id = k.event_id
 limit :rows)
union all
(select 'event', coalesce(e.public_id, public_id_of('evt', e.id)), e.tenant_id, e.type || ' about ' || e.subject
 from event e
 where e.subject = :text
   and (e.main_id is null or e.main_id = e.id)
 order by e.id desc
 limit :rows)
union all
(select 'delivery', public_id_of('dlv', q.id), q.tenant_id,
        case when f.id is not null then 'processing' when q.attempts = 0 then 'pending' else 'retrying' end
 from bucket_lease l
 join queue q on q.bucket = l.bucket and q.id = :delivery?::uuid
 left join in_flight f on f.bucket = q.bucket and f.id = q.id)
union all
(select 'delivery', public_id_of('dlv', a.delivery_id), a.tenant_id, a.outcome
 from attempt a
 where a.delivery_id = :delivery
   and a.outcome <> 'retrying'
 limit 1)
