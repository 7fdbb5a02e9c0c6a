// GET /v1/stats and /v1/tenants/{tenant}/stats: how deliveries went, by hour, tenant, type or endpoint.
#include "postrider/history/stats.sql.hpp"

#include <algorithm>
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

constexpr std::string_view kGroupings[] = {"hour", "tenant", "type", "endpoint"};

std::optional<double> share(int64_t part, int64_t whole) {
  if (whole == 0) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(whole);
}

std::string stats_json(const history::sql::StatsRow& row) {
  JsonObject json;
  if (row.hour) json.add("hour", *row.hour);
  if (row.tenant_id) json.add("tenant_id", *row.tenant_id);
  if (row.endpoint_public_id) json.add("endpoint_id", *row.endpoint_public_id);
  if (row.event_type) json.add("event_type", *row.event_type);
  json.add("delivered", row.delivered)
      .add("retried", row.retried)
      .add("dead_lettered", row.dead)
      .add("canceled", row.canceled)
      .add("attempts", row.exchanges)
      .add("first_attempt_successes", row.first_attempt_successes)
      .add("first_attempt_success_rate", share(row.first_attempt_successes, row.delivered + row.dead))
      .add("attempts_per_delivered", share(row.delivered_attempts, row.delivered))
      .add("latency_ms_average", share(row.latency_us, row.exchanges * 1'000))
      .add("latency_ms_max", static_cast<double>(row.latency_us_max) / 1'000);
  return json.text();
}

struct Filter {
  base::Timestamp since, until;
  std::optional<std::string> tenant, type;
  std::optional<base::Uuid> endpoint;
  int limit = 0;
};

template <class Statement>
Task<pg::RowList<history::sql::StatsRow>> find_stats(pg::Link& link, const Filter& filter) {
  const Statement statement{.since = filter.since,
                            .until = filter.until,
                            .tenant = filter.tenant,
                            .endpoint = filter.endpoint,
                            .event_type = filter.type,
                            .rows = filter.limit};
  co_return co_await link.run(statement);
}

Task<pg::RowList<history::sql::StatsRow>> find_stats(pg::Link& link, const Filter& filter,
                                                     std::string_view by) {
  if (by == "tenant") return find_stats<history::sql::stats_by_tenant>(link, filter);
  if (by == "type") return find_stats<history::sql::stats_by_type>(link, filter);
  if (by == "endpoint") return find_stats<history::sql::stats_by_endpoint>(link, filter);
  return find_stats<history::sql::stats_by_hour>(link, filter);
}

Task<Response> show(Call& call) {
  Query query(call.request);
  Filter filter;
  filter.tenant = query.value("tenant");
  const auto& parameters = call.request.path_parameters;
  if (!parameters.empty() && parameters.front().name == "tenant") filter.tenant = call.tenant();
  const auto endpoint_name = query.value("endpoint");
  filter.type = query.value("type");
  if (filter.type && !model::is_event_type(*filter.type))
    query.reject("type", "must be an event type like invoice.paid; patterns are not supported here");
  const std::string by = query.value("by").value_or("hour");
  if (std::ranges::count(kGroupings, by) == 0)
    query.reject("by", "must be one of: hour, tenant, type, endpoint");
  const auto now = call.services.registry.ids.now();
  const Query::Range range = query.range();
  filter.since = std::chrono::floor<std::chrono::hours>(range.since.value_or(now - kSinceDefault));
  filter.until = range.until.value_or(pg::infinity);
  filter.limit = query.limit();
  FieldProblems problems = query.finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  const pg::Pool::Handle lease = co_await call.database();
  if (filter.tenant) {
    const std::optional<registry::Tenant> known = co_await registry::find_tenant(*lease, *filter.tenant);
    if (!known) co_return call.reject(unknown("tenant"));
  }
  if (endpoint_name) {
    const auto lane = co_await find_lane(*lease, filter.tenant, *endpoint_name);
    if (!lane) co_return call.reject(lane.error());
    filter.endpoint = lane->id.uuid;
  }
  const pg::RowList<history::sql::StatsRow> rows = co_await find_stats(*lease, filter, by);
  std::vector<std::string> items;
  runtime::Pause pause(call.services.loop);
  for (const auto& row : rows) {
    items.push_back(stats_json(row));
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
