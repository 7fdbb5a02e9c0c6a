-- The state of a tenant's contacts. Whatever depends on the list locks the tenant's row first.

-- name: add_contacts
-- :addresses: those that the list gained. The tenant is locked already.
select contacts_added(:tenant::text, :addresses::text[], :is_operator::boolean)

-- name: find_contact
-- Primary keys. No row: it is not on the tenant's list.
-- not null: contact, is_url
select l.contact, is_url_contact(l.contact) as is_url, c.confirmed_at, c.unsubscribed_at
from tenant t
cross join jsonb_array_elements_text(t.contacts) as l (contact)
left join contact c on c.tenant_id = t.id and c.address = contact_key(l.contact)
where t.id = :tenant::text
  and contact_key(l.contact) = contact_key(:address::text)

-- name: vouch_for_contact
-- Primary key. No row: it unsubscribed, and only the address itself can change that.
insert into contact (tenant_id, address, confirmed_at)
values (:tenant::text, contact_key(:address::text), now())
on conflict (tenant_id, address) do update
  set confirmed_at = excluded.confirmed_at
  where contact.unsubscribed_at is null
returning confirmed_at

-- name: request_confirmation
-- Primary key. One that waits already, perhaps for the next day, stays as it is.
insert into contact_request (tenant_id, address)
values (:tenant::text, contact_key(:address::text))
on conflict do nothing

-- name: forget_confirmations
-- Mails to send and links that are no longer needed. contact_token_by_contact, primary key.
with links as (
  delete from contact_token
  where tenant_id = :tenant::text
    and address = contact_key(:address::text)
    and purpose = 'confirm'
)
delete from contact_request
where tenant_id = :tenant
  and address = contact_key(:address)

-- name: delete_contacts_of_tenant
-- Primary keys, contact_token_by_contact.
with links as (
  delete from contact_token
  where tenant_id = :tenant::text
),
requests as (
  delete from contact_request
  where tenant_id = :tenant
)
delete from contact
where tenant_id = :tenant

-- name: insert_link
insert into contact_token (hash, purpose, tenant_id, address, expires_at)
values (
  :hash::bytea, :purpose::text, :tenant::text, contact_key(:address::text),
  now() + make_interval(days => :days::integer)
)

-- name: take_confirmation_link
-- Primary key; locks the link, so it works once. No row: it is unknown, used or expired.
-- not null: all
-- row: link
delete from contact_token k
using tenant t
where k.hash = :hash::bytea
  and k.purpose = 'confirm'
  and k.expires_at > now()
  and t.id = k.tenant_id
  and t.status <> 'deleted'
returning k.hash, k.tenant_id, k.address

-- name: find_unsubscribe_link
-- Primary key. The link keeps working: mail programs may call it more than once.
-- not null: all
-- row: link
select k.hash, k.tenant_id, k.address
from contact_token k
join tenant t on t.id = k.tenant_id and t.status <> 'deleted'
where k.hash = :hash::bytea
  and k.purpose = 'unsubscribe'
  and k.expires_at > now()

-- name: confirm_contact
-- Primary key.
insert into contact (tenant_id, address, confirmed_at)
values (:tenant::text, :address::text, now())
on conflict (tenant_id, address) do update
  set confirmed_at = excluded.confirmed_at,
      unsubscribed_at = null

-- name: unsubscribe_contact
-- Primary key. No row: it had unsubscribed before.
-- not null: all
insert into contact (tenant_id, address, unsubscribed_at)
values (:tenant::text, :address::text, now())
on conflict (tenant_id, address) do update
  set unsubscribed_at = excluded.unsubscribed_at
  where contact.unsubscribed_at is null
returning address
