-- The migration of a next version of postrider for the rolling upgrade: a column on a hot table, a function that both
-- versions call all the time, and a view.
alter table queue add added_by_the_next_version text;

create or replace function public_id_of(prefix text, id uuid) returns text language sql immutable strict parallel safe as $$
  select concat(prefix, '_', replace(id::text, '-', ''))
$$;

create or replace view webhook_replay_requests as
select id as replay_id, delivery_id, requested_by, reason, created_at, tenant_id, kind, status, matched, queued,
       public_id_of('rpl', id) as replay, public_id_of('dlv', delivery_id) as delivery,
       'next' as added_by_the_next_version
from replay;
