-- name: search
-- $1 what is looked for, $2 the event uuid in it or null, $3 the delivery uuid in it or null,
-- $4 rows of each kind. Indexes: keys, event_by_subject, endpoint_by_name, endpoint_by_host, event_key_pkey per tenant.
select 'tenant' as kind, t.id as id, t.id as tenant_id, t.name as about
from tenant t
where t.id = $1::text
union all
(select 'endpoint', e.public_id, e.tenant_id, e.url
 from endpoint e
 where e.public_id = $1::text
 limit $4::integer)
union all
(select 'endpoint', e.public_id, e.tenant_id, e.url
 from endpoint e
 where substring(e.url from '://([^/:?#]+)') = lower($1::text)
   and e.status <> 'deleted'
 order by e.id
 limit $4::integer)
union all
(select 'event', coalesce(e.public_id, public_id_of('evt', e.id)), e.tenant_id, e.type
 from event e
 where e.id = $2::uuid)
union all
(select 'event', k.key, k.tenant_id, e.type
 from tenant t
 join event_key k on k.tenant_id = t.id and k.kind = 'id' and k.key = $1::text
 join event e on e.id = k.event_id
 limit $4::integer)
union all
(select 'event', coalesce(e.public_id, public_id_of('evt', e.id)), e.tenant_id, e.type || ' about ' || e.subject
 from event e
 where e.subject = $1::text
   and (e.main_id is null or e.main_id = e.id)
 order by e.id desc
 limit $4::integer)
union all
(select 'delivery', public_id_of('dlv', q.id), q.tenant_id,
        case when f.id is not null then 'processing' when q.attempts = 0 then 'pending' else 'retrying' end
 from bucket_lease l
 join queue q on q.bucket = l.bucket and q.id = $3::uuid
 left join in_flight f on f.bucket = q.bucket and f.id = q.id)
union all
(select 'delivery', public_id_of('dlv', a.delivery_id), a.tenant_id, a.outcome
 from attempt a
 where a.delivery_id = $3::uuid
   and a.outcome <> 'retrying'
 limit 1)
