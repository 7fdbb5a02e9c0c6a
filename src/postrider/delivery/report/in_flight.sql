-- name: set_in_flight
-- The deliveries that a node is sending, with the bucket of each. One small row per node, written by that node only.
insert into node_in_flight (node_id, delivery_ids, buckets)
values (:node::uuid, :deliveries::uuid[], :buckets::integer[])
on conflict (node_id) do update
  set delivery_ids = excluded.delivery_ids,
      buckets = excluded.buckets,
      changed_at = now()

-- name: clear_in_flight
-- Primary key.
delete from node_in_flight
where node_id = :node::uuid
