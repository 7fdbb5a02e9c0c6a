// GET /v1/search?q=: anything by any id, by the subject of events or by the host of endpoints' URLs.
#include <utility>

#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/page.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/history/search.sql.hpp"
#include "postrider/model/ids.hpp"

namespace postrider::api {

namespace {

constexpr int kOfEachKind = 10;
constexpr size_t kQueryMax = 512;

template <class Id>
std::optional<base::Uuid> uuid_in(std::string_view text) {
  const auto id = Id::from_public_id(text);
  if (!id) return std::nullopt;
  return id->uuid;
}

std::string path_of(std::string_view kind, const std::string& tenant, const std::string& id) {
  const std::string base = "/v1/tenants/" + tenant;
  if (kind == "endpoint") return base + "/endpoints/" + id;
  if (kind == "event") return base + "/events/" + id;
  if (kind == "delivery") return base + "/deliveries/" + id;
  return base;
}

Task<Response> search(Call& call) {
  Query query(call.request);
  const std::string wanted = query.value("q").value_or("");
  if (wanted.empty() || wanted.size() > kQueryMax) query.reject("q", "must have 1 to 512 bytes");
  FieldProblems problems = query.finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  const auto event = uuid_in<model::EventId>(wanted);
  const auto delivery = uuid_in<model::DeliveryId>(wanted);
  const pg::Pool::Handle lease = co_await call.database();
  const auto rows = co_await lease->run(
      history::sql::search{.text = wanted, .rows = kOfEachKind, .event = event, .delivery = delivery});
  std::vector<std::string> items;
  for (const auto& row : rows) {
    const std::string id(row.id), tenant(row.tenant_id);
    JsonObject item;
    item.add("kind", row.kind)
        .add("id", id)
        .add("tenant_id", tenant)
        .add("about", row.about)
        .add("path", path_of(row.kind, tenant, id));
    items.push_back(item.text());
  }
  JsonObject json;
  json.raw("data", json_array(items));
  co_return Response::json(200, json.text());
}

}  // namespace

void add_search_routes(Routes& routes) {
  routes.add(Method::get, "/v1/search", Access::read, search);
}

}  // namespace postrider::api
