-- Sessions of browsers, and one-time links that open them.

-- A link opens one session, once. Deleting it ends the sessions it opened.
create table sign_in_link (
  id uuid primary key,
  hash bytea not null unique,                  -- SHA-256 of the token, which is in the fragment of the address
  kind text not null check (kind in ('console', 'portal')),
  key_id uuid not null references api_key (id) on delete cascade,     -- the key that created it
  tenant_id text collate "C" references tenant (id) on delete cascade,  -- of the portal
  is_read_only boolean not null default false,
  payloads boolean not null default true,      -- no more than the key
  is_preview boolean not null default false,   -- opened by an operator who looks at a customer's pages
  session_seconds int not null,                -- of the console: in all; of the portal: without a request
  label text,                                  -- the person it is for
  origin text,                                 -- of the page that shows the portal in a frame
  path text,                                   -- of the page that it opens, below /portal
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  used_at timestamptz
);
create index sign_in_link_by_expiry on sign_in_link (expires_at);
create index sign_in_link_by_tenant on sign_in_link (tenant_id, id);
create index sign_in_link_unused on sign_in_link (tenant_id, expires_at) where used_at is null;
create index sign_in_link_by_key on sign_in_link (key_id);

-- A session ends with its key. It has the rights that the key has now, or, if a link for the portal opened it, those of a
-- customer of the link's tenant.
create table session (
  hash bytea primary key,                      -- SHA-256 of the token, which is in the cookie or in the memory of a page
  id uuid not null unique,
  kind text not null check (kind in ('console', 'portal')),
  key_id uuid not null references api_key (id) on delete cascade,
  link_id uuid references sign_in_link (id) on delete cascade,
  tenant_id text collate "C" references tenant (id) on delete cascade,  -- of the portal
  is_read_only boolean not null default false,
  payloads boolean not null default true,
  is_preview boolean not null default false,
  idle_seconds int not null,                   -- ends after this time without a request
  created_at timestamptz not null default now(),
  last_seen_at timestamptz not null default now(),  -- to a minute
  expires_at timestamptz not null,
  address text                                 -- of the browser that opened it
);
create index session_by_expiry on session (expires_at);
create index session_by_key on session (key_id);
create index session_by_link on session (link_id);
create index session_by_tenant on session (tenant_id);
