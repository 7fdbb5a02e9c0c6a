-- The outbox, only where postrider itself lives.

-- Outboxes in other databases.
create table outbox_database (
  id text collate "C" primary key,
  display_url text not null,                     -- without the password
  database_url_sealed bytea not null,          -- encrypted with the master key
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);

-- For support: rows that wait, and rows that were set aside.
create view webhook_outbox as
select o.id,
       coalesce(o.public_id, 'evt_' || replace(o.event_id::text, '-', '')) as event_id,
       o.tenant_id, o.type, o.version, o.subject, o.occurred_at, o.created_at,
       case when o.set_aside_at is not null then 'set_aside' when o.attempts > 0 then 'failed' else 'fresh' end as status,
       o.attempts, o.last_error, o.retry_at, o.set_aside_at,
       o.type as event_type, o.version as payload_version, o.processed_at, o.retry_at as next_attempt_at
from outbox o;

-- Leases of tasks that one node at a time runs.
insert into session_lease (name) values ('retention'), ('refanout'), ('dead_letter_count');
