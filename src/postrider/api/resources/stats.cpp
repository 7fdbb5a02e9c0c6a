// GET /v1/stats and /v1/tenants/{tenant}/stats: how deliveries went, by hour, tenant, type or endpoint.
#include "postrider/history/stats.sql.hpp"

#include <utility>

#include "postrider/api/resources/delivery_filter.hpp"
#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/page.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/model/event_type.hpp"
#include "postrider/registry/tenants.hpp"

namespace postrider::api {

namespace {

constexpr auto kSinceDefault = std::chrono::hours(24);

struct Shape {
  std::string_view by;
  pg::Statement statement;
};
constexpr Shape kShapes[] = {{"hour", history::sql::stats_by_hour},
                             {"tenant", history::sql::stats_by_tenant},
                             {"type", history::sql::stats_by_type},
                             {"endpoint", history::sql::stats_by_endpoint}};

std::optional<double> share(int64_t part, int64_t whole) {
  if (whole == 0) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(whole);
}

std::string stats_json(const pg::Rows& rows, size_t row) {
  const auto number = [&rows, row](size_t column) { return rows.get<int64_t>(row, column); };
  const int64_t delivered = number(4), first = number(6), retried = number(7), dead = number(8),
                exchanges = number(10), latency_us = number(11), max_us = number(12);
  JsonObject json;
  if (const auto hour = rows.get<std::optional<base::Timestamp>>(row, 0)) json.add("hour", *hour);
  if (const auto tenant = rows.get<std::optional<std::string>>(row, 1)) json.add("tenant_id", *tenant);
  if (const auto endpoint = rows.get<std::optional<std::string>>(row, 2)) json.add("endpoint_id", *endpoint);
  if (const auto type = rows.get<std::optional<std::string>>(row, 3)) json.add("event_type", *type);
  json.add("delivered", delivered)
      .add("retried", retried)
      .add("dead_lettered", dead)
      .add("canceled", number(9))
      .add("attempts", exchanges)
      .add("first_attempt_successes", first)
      .add("first_attempt_success_rate", share(first, delivered + dead))
      .add("attempts_per_delivered", share(number(5), delivered))
      .add("latency_ms_average", share(latency_us, exchanges * 1'000))
      .add("latency_ms_max", static_cast<double>(max_us) / 1'000);
  return json.text();
}

Task<Response> show(Call& call) {
  Query query(call.request);
  std::optional<std::string> tenant = query.value("tenant");
  const auto& parameters = call.request.path_parameters;
  if (!parameters.empty() && parameters.front().name == "tenant") tenant = call.tenant();
  const auto endpoint_name = query.value("endpoint"), type = query.value("type");
  if (type && !model::is_event_type(*type))
    query.refuse("type", "must be an event type like invoice.paid; patterns are not supported here");
  const std::string by = query.value("by").value_or("hour");
  const Shape* shape = nullptr;
  for (const Shape& each : kShapes)
    if (each.by == by) shape = &each;
  if (shape == nullptr) query.refuse("by", "must be one of: hour, tenant, type, endpoint");
  const auto now = call.services.registry.ids.now();
  const Query::Range range = query.range();
  const base::Timestamp since = range.since.value_or(now - kSinceDefault);
  const base::Timestamp until = range.until.value_or(pg::infinity);
  const int limit = query.limit();
  FieldProblems problems = query.finish();
  if (!problems.empty()) co_return call.refuse(invalid(std::move(problems)));
  const pg::Pool::Lease lease = co_await call.database();
  if (tenant) {
    const std::optional<registry::Tenant> known = co_await registry::find_tenant(*lease, *tenant);
    if (!known) co_return call.refuse(unknown_tenant());
  }
  std::optional<base::Uuid> endpoint;
  if (endpoint_name) {
    const auto lane = co_await find_lane(*lease, tenant, *endpoint_name);
    if (!lane) co_return call.refuse(lane.error());
    endpoint = lane->id.uuid;
  }
  const base::Timestamp from = std::chrono::floor<std::chrono::hours>(since);
  pg::Params params(from, until, tenant, endpoint, type, limit);
  const pg::Rows rows = co_await lease->run_one(shape->statement, std::move(params));
  std::vector<std::string> items;
  runtime::Pause pause(call.services.loop);
  for (size_t row = 0; row < rows.size(); ++row) {
    items.push_back(stats_json(rows, row));
    co_await pause;
  }
  JsonObject json;
  json.raw("data", json_array(items));
  co_return Response::json(200, json.text());
}

}  // namespace

void add_stats_routes(Routes& routes) {
  routes.add(Method::get, "/v1/stats", Access::read, show);
  routes.add(Method::get, "/v1/tenants/{tenant}/stats", Access::read, show);
}

}  // namespace postrider::api
