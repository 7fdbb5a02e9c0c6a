-- Contacts of tenants, and the mails that ask them to confirm.

-- An e-mail address as a key: mail servers ignore case.
create function contact_key(address text) returns text language sql immutable strict parallel safe as $$
  select lower(address collate "C")
$$;

-- Notices to URLs need no confirmation: they go through the guard and are signed.
create function is_url_contact(contact text) returns boolean language sql immutable strict parallel safe as $$
  select position('://' in contact) > 0
$$;

-- The state of e-mail addresses that are or were contacts of a tenant. A row stays when the address is removed from the list,
-- so removing and adding it again changes nothing. Without a row the address is not confirmed.
create table contact (
  tenant_id text collate "C" not null references tenant (id),
  address text collate "C" not null,           -- contact_key()
  confirmed_at timestamptz,
  unsubscribed_at timestamptz,                 -- cleared only when the address confirms again itself
  primary key (tenant_id, address)
);

-- Confirmation mails to send; only for addresses on the tenant's list.
create table contact_request (
  tenant_id text collate "C" not null references tenant (id),
  address text collate "C" not null,           -- contact_key()
  due_at timestamptz not null default now(),
  tries integer not null default 0,
  created_at timestamptz not null default now(),
  primary key (tenant_id, address)
);
create index contact_request_by_due on contact_request (due_at);

-- Links in mails: the mail has the token, this table its SHA-256.
create table contact_token (
  hash bytea primary key,
  purpose text not null check (purpose in ('confirm', 'unsubscribe')),
  tenant_id text collate "C" not null references tenant (id),
  address text collate "C" not null,           -- contact_key()
  expires_at timestamptz not null
);
create index contact_token_by_contact on contact_token (tenant_id, address);
create index contact_token_by_expiry on contact_token (expires_at);

-- Messages per UTC day, for the limits. scope confirmations: by tenant; confirmations_to: by mailbox, over all tenants;
-- notices: by tenant.
create table mail_budget (
  scope text not null check (scope in ('confirmations', 'confirmations_to', 'notices')),
  key text collate "C" not null,
  day date not null,
  used integer not null,
  primary key (scope, key, day)
);

-- Takes `wanted` messages from today's budget; false if fewer are left. Locks the row of the budget.
create function take_mail_budget(scope text, key text, wanted integer, at_most integer) returns boolean
language plpgsql set search_path = postrider, pg_temp as $$
declare
  today date := (now() at time zone 'UTC')::date;
begin
  insert into mail_budget values (scope, key, today, 0) on conflict do nothing;
  update mail_budget b
  set used = b.used + wanted
  where b.scope = take_mail_budget.scope
    and b.key = take_mail_budget.key
    and b.day = today
    and b.used + wanted <= at_most;
  return found;
end
$$;

-- When a message over the limit may be sent: the next UTC day.
create function next_mail_day() returns timestamptz language sql stable as $$
  select ((now() at time zone 'UTC')::date + 1)::timestamp at time zone 'UTC'
$$;

-- The contacts that receive notices, in the order of the list; null if there are none.
create function contacts_to_notify(tenant text) returns text[] language sql stable
set search_path = postrider, pg_temp as $$
  select array_agg(l.contact order by l.place)
  from tenant t
  cross join jsonb_array_elements_text(t.contacts) with ordinality as l (contact, place)
  left join contact c on c.tenant_id = t.id and c.address = contact_key(l.contact)
  where t.id = contacts_to_notify.tenant
    and t.status <> 'deleted'
    and (is_url_contact(l.contact) or (c.confirmed_at is not null and c.unsubscribed_at is null))
$$;

-- Handles addresses that are added to the list, in the transaction that changes it. An address added by an operator is
-- confirmed at once; the others, and those that unsubscribed, are asked to confirm. Deletes requests for addresses that are
-- no longer on the list.
create function contacts_added(tenant text, added text[], is_operator boolean) returns void language plpgsql
set search_path = postrider, pg_temp as $$
begin
  delete from contact_request r
  where r.tenant_id = tenant
    and not exists (select
                    from tenant t
                    cross join jsonb_array_elements_text(t.contacts) as l (contact)
                    where t.id = contacts_added.tenant and contact_key(l.contact) = r.address);
  if is_operator then
    insert into contact (tenant_id, address, confirmed_at)
    select tenant, contact_key(a), now()
    from unnest(added) as a
    where not is_url_contact(a)
    on conflict (tenant_id, address) do update
      set confirmed_at = coalesce(contact.confirmed_at, excluded.confirmed_at)
      where contact.unsubscribed_at is null;
  end if;
  insert into contact_request (tenant_id, address)
  select tenant, contact_key(a)
  from unnest(added) as a
  left join contact c on c.tenant_id = tenant and c.address = contact_key(a)
  where not is_url_contact(a)
    and (c.confirmed_at is null or c.unsubscribed_at is not null)
  on conflict do nothing;
end
$$;

-- Takes the confirmation mail that has waited longest, for ten minutes. No row: none is due. outcome: send, capped (it waits
-- for the next day), dropped (the address was removed or confirmed meanwhile). A mailbox gets at most per_address mails a day
-- and three times that in 30 days, over all tenants and tags (user+tag@…). Locks the request, and skips locked ones.
create function take_confirmation(per_tenant integer, per_address integer)
returns table (outcome text, tenant_id text, address text, recipient text, tries integer) language plpgsql
set search_path = postrider, pg_temp as $$
#variable_conflict use_column
declare
  taken contact_request;
  mailbox text;
  is_allowed boolean;
begin
  select * into taken
  from contact_request r
  where r.due_at <= now()
  order by r.due_at
  limit 1
  for update skip locked;
  if not found then
    return;
  end if;
  tenant_id := taken.tenant_id;
  address := taken.address;
  tries := taken.tries + 1;
  select l.contact into recipient
  from tenant t
  cross join jsonb_array_elements_text(t.contacts) as l (contact)
  left join contact c on c.tenant_id = t.id and c.address = taken.address
  where t.id = taken.tenant_id
    and t.status <> 'deleted'
    and contact_key(l.contact) = taken.address
    and (c.confirmed_at is null or c.unsubscribed_at is not null);
  if recipient is null then
    outcome := 'dropped';
    delete from contact_request r where r.tenant_id = taken.tenant_id and r.address = taken.address;
    return next;
    return;
  end if;
  mailbox := regexp_replace(taken.address, '\+[^@]*@', '@');
  -- The tenant's own budget first: a tenant that has used it up takes nothing from the mailbox's budget, which all share.
  is_allowed := taken.tries > 0;
  if not is_allowed and take_mail_budget('confirmations', taken.tenant_id, 1, per_tenant) then
    is_allowed := (select coalesce(sum(b.used), 0)
                   from mail_budget b
                   where b.scope = 'confirmations_to'
                     and b.key = mailbox
                     and b.day > (now() at time zone 'UTC')::date - 30) < 3 * per_address;
    if is_allowed then
      is_allowed := take_mail_budget('confirmations_to', mailbox, 1, per_address);
    end if;
  end if;
  if is_allowed then
    outcome := 'send';
    update contact_request r
    set due_at = now() + interval '10 minutes', tries = taken.tries + 1
    where r.tenant_id = taken.tenant_id and r.address = taken.address;
  else
    outcome := 'capped';
    update contact_request r
    set due_at = next_mail_day()
    where r.tenant_id = taken.tenant_id and r.address = taken.address;
  end if;
  return next;
end
$$;

-- Signs notices to URLs; one per tenant, shown when it is created.
create table contact_secret (
  tenant_id text collate "C" primary key references tenant (id),
  sealed bytea not null,
  created_at timestamptz not null default now()
);
