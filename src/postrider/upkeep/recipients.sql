-- Who would hear of failing endpoints.

-- name: recipients
-- Tenants without a contact that gets notices (their number, and the first 20 by ID), whether a contact is an e-mail address,
-- and whether an endpoint of the reserved tenant is subscribed to operational events. Reads all tenants.
-- not null: all
select count(*) as tenants,
       coalesce((array_agg(t.id order by t.id))[1:20], '{}') as first_ids,
       exists (select
               from tenant m
               cross join jsonb_array_elements_text(m.contacts) as l (contact)
               where m.status <> 'deleted'
                 and not is_url_contact(l.contact)) as has_mail_contact,
       exists (select
               from subscription s
               join endpoint e on e.id = s.endpoint_id
               where s.tenant_id = 'postrider'
                 and s.enabled
                 and e.status in ('active', 'paused')) as has_operator
from tenant t
where t.status <> 'deleted'
  and t.id <> 'postrider'
  and contacts_to_notify(t.id) is null
