// /v1/nodes: the running nodes and the buckets each serves.
#include <utility>

#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/cluster/nodes.sql.hpp"
#include "postrider/model/ids.hpp"

namespace postrider::api {

namespace {

std::string numbers_json(const std::vector<int32_t>& numbers) {
  std::vector<std::string> items;
  for (const int32_t number : numbers) items.push_back(std::to_string(number));
  return json_array(items);
}

std::string node_json(const cluster::sql::list_nodes::Row& row) {
  JsonObject json;
  json.add("id", model::NodeId{row.id}.public_id())
      .add("name", row.name)
      .add("version", row.version)
      .add("delivers", row.delivers)
      .add("alive", row.alive)
      .add("started_at", row.started_at)
      .add("heartbeat_at", row.heartbeat_at)
      .raw("buckets", numbers_json(row.buckets));
  return json.text();
}

Task<Response> list(Call& call) {
  const pg::Pool::Handle lease = co_await call.database();
  const auto [nodes, free] =
      co_await lease->run(cluster::sql::list_nodes{}, cluster::sql::list_free_buckets{});
  std::vector<std::string> items;
  for (const auto& row : nodes) items.push_back(node_json(row));
  JsonObject json;
  json.raw("data", json_array(items));
  json.raw("free_buckets", numbers_json(free.front().buckets));
  co_return Response::json(200, json.text());
}

}  // namespace

void add_node_routes(Routes& routes) {
  routes.add(Method::get, "/v1/nodes", Access::read, list);
}

}  // namespace postrider::api
