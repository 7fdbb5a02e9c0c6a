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

std::string node_json(const pg::Rows& rows, size_t row) {
  JsonObject json;
  json.add("id", model::NodeId{rows.get<base::Uuid>(row, 0)}.public_id())
      .add("name", rows.get<std::string_view>(row, 1))
      .add("version", rows.get<std::string_view>(row, 2))
      .add("delivers", rows.get<bool>(row, 3))
      .add("alive", rows.get<bool>(row, 4))
      .add("started_at", rows.get<base::Timestamp>(row, 5))
      .add("heartbeat_at", rows.get<base::Timestamp>(row, 6))
      .raw("buckets", numbers_json(rows.get<std::vector<int32_t>>(row, 7)));
  return json.text();
}

Task<Response> list(Call& call) {
  pg::Batch batch;
  batch.with(cluster::sql::list_nodes).with(cluster::sql::list_free_buckets);
  const pg::Pool::Lease lease = co_await call.database();
  const std::vector<pg::Rows> found = co_await lease->run(std::move(batch));
  std::vector<std::string> nodes;
  for (size_t row = 0; row < found[0].size(); ++row) nodes.push_back(node_json(found[0], row));
  JsonObject json;
  json.raw("data", json_array(nodes));
  json.raw("free_buckets", numbers_json(found[1].get<std::vector<int32_t>>(0, 0)));
  co_return Response::json(200, json.text());
}

}  // namespace

void add_node_routes(Routes& routes) {
  routes.add(Method::get, "/v1/nodes", Access::read, list);
}

}  // namespace postrider::api
