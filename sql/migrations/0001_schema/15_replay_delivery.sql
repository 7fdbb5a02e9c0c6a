-- Replays that other roles requested in SQL. Those roles decide when they commit, so they must not keep the locks of
-- create_replay() until then (the position of a strict endpoint would block publishing). They only append here, and a node
-- creates the replay soon after the commit.
create table requested_replay (
  id bigint generated always as identity primary key,
  origin_id uuid not null,                     -- the delivery to replay
  reason text not null,
  requested_by text not null,
  due_at timestamptz not null,
  replay_id uuid not null,                     -- the IDs that were returned
  delivery_id uuid not null
);

-- Creates the oldest replay that was requested and committed. False: there is none. One that is no longer possible is noted
-- in the audit log.
create function create_requested_replay() returns boolean language plpgsql set search_path = postrider, pg_temp as $$
declare
  wanted requested_replay;
  created record;
begin
  delete from requested_replay
  where id = (select r.id from requested_replay r order by r.id limit 1 for update skip locked)
  returning * into wanted;
  if not found then
    return false;
  end if;
  select m.outcome, m.tenant_id
  into created
  from create_replay(null, wanted.origin_id, wanted.reason, wanted.requested_by, wanted.due_at, null, wanted.replay_id,
                   wanted.delivery_id) as m;
  if created.outcome <> 'created' then
    perform write_audit('system', 'system', 'delivery.replay_dropped', created.tenant_id,
                        public_id_of('dlv', wanted.origin_id),
                        after => jsonb_build_object('delivery_id', public_id_of('dlv', wanted.delivery_id),
                                                    'replay_id', public_id_of('rpl', wanted.replay_id)),
                        reason => created.outcome);
  end if;
  return true;
end
$$;

-- For people: replays a delivery as a new delivery of the same event, and returns its ID. The replay is created here and rolled
-- back, with its locks, so that the caller sees errors; a node creates it once the caller has committed.
create function replay_delivery(delivery text, reason text, not_before timestamptz default now())
returns text language plpgsql security definer set search_path = postrider, pg_temp as $$
declare
  created record;
begin
  if delivery !~ '^dlv_[0-9a-f]{32}$' then
    raise exception '"%" is not a delivery ID', delivery
      using errcode = 'invalid_parameter_value', hint = 'A delivery ID is dlv_ and 32 hex digits.';
  end if;
  if coalesce(btrim(reason), '') = '' or octet_length(reason) > 1000 then
    raise exception 'reason is required (1 to 1,000 bytes; it is recorded in the audit log)' using errcode = 'invalid_parameter_value';
  end if;
  if not_before > now() + interval '30 days' then
    raise exception 'not_before must be at most 30 days from now' using errcode = 'invalid_parameter_value';
  end if;
  begin
    select m.outcome, m.replay_id, m.delivery_id, m.tenant_id
    into created
    from create_replay(null, substr(delivery, 5)::uuid, reason, 'sql:' || session_user, coalesce(not_before, now())) as m;
    raise exception using errcode = 'PRL02', message = 'rolled back';
  exception when sqlstate 'PRL02' then
    null;
  end;
  case created.outcome
    when 'created' then
      insert into requested_replay (origin_id, reason, requested_by, due_at, replay_id, delivery_id)
      values (substr(delivery, 5)::uuid, reason, 'sql:' || session_user, coalesce(not_before, now()), created.replay_id,
              created.delivery_id);
      perform write_audit('sql', session_user, 'delivery.replay', created.tenant_id, delivery,
                          after => jsonb_build_object('delivery_id', public_id_of('dlv', created.delivery_id),
                                                      'replay_id', public_id_of('rpl', created.replay_id)),
                          reason => reason);
      return public_id_of('dlv', created.delivery_id);
    when 'unknown_delivery' then
      raise exception 'delivery % does not exist', delivery using errcode = 'no_data_found';
    when 'endpoint_inactive' then
      raise exception 'the endpoint of delivery % is disabled or deleted', delivery
        using errcode = 'object_not_in_prerequisite_state', hint = 'Resume the endpoint first.';
    when 'event_erased' then
      raise exception 'the payload of the event of delivery % was erased', delivery
        using errcode = 'object_not_in_prerequisite_state';
    else
      raise exception 'the event of delivery % is past its retention', delivery
        using errcode = 'object_not_in_prerequisite_state';
  end case;
end
$$;
