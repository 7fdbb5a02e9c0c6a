-- Partitions by day, by range of a time-ordered uuid.

-- Creates one day's partition of event, attempt, dead_letter or inbox unless it exists; true if it was created. It is created
-- separately with a CHECK and then attached, so that an open query on the parent never makes publishing wait.
create function create_partition(parent text, day date) returns boolean language plpgsql as $$
declare
  partition text := parent || '_' || to_char(day, 'YYYYMMDD');
  days text := case parent when 'inbox' then 'inbox' else parent || '_day' end;
  range_column text := case when parent in ('event', 'inbox') then 'id' else 'delivery_id' end;
  low uuid := postrider.id_floor(day::timestamp at time zone 'UTC');
  high uuid := postrider.id_floor((day + 1)::timestamp at time zone 'UTC');
begin
  if to_regclass('postrider.' || partition) is not null then
    return false;
  end if;
  execute format('create table postrider.%I (like postrider.%I including all)', partition, days);
  if parent = 'inbox' then
    -- Leave room in each page: every row is updated once, when its message is done.
    execute format('alter table postrider.%I set (fillfactor = 85)', partition);
  end if;
  execute format('alter table postrider.%I add constraint by_day check (%I >= %L and %I < %L)',
                 partition, range_column, low, range_column, high);
  execute format('alter table postrider.%I attach partition postrider.%I for values from (%L) to (%L)',
                 days, partition, low, high);
  execute format('alter table postrider.%I drop constraint by_day', partition);
  return true;
end
$$;

-- Creates the missing ones from `back` days ago to `ahead` days from now; returns how many.
create function create_partitions(back integer default 7, ahead integer default 14)
returns integer language sql as $$
  select count(*)::integer
  from unnest(array['event', 'attempt', 'dead_letter', 'inbox']) as parent,
       generate_series(-back, ahead) as day
  where postrider.create_partition(parent, (now() at time zone 'UTC')::date + day)
$$;

select create_partitions();
analyze queue;
