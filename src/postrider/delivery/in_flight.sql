-- name: set_in_flight
-- $1 node, $2 deliveries, $3 the bucket of each. One small row per node, written by that node only.
insert into node_in_flight (node_id, delivery_ids, buckets)
values ($1::uuid, $2::uuid[], $3::integer[])
on conflict (node_id) do update
  set delivery_ids = excluded.delivery_ids,
      buckets = excluded.buckets,
      changed_at = now()

-- name: clear_in_flight
-- $1 node. Primary key.
delete from node_in_flight
where node_id = $1::uuid
