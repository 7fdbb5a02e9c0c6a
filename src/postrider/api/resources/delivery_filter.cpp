#include "postrider/api/resources/delivery_filter.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "postrider/history/deliveries.sql.hpp"
#include "postrider/history/events.sql.hpp"
#include "postrider/registry/tenants.hpp"

namespace postrider::api {

namespace {

constexpr std::array<std::string_view, 6> kCauses{"rejected", "gone",    "exhausted",
                                                  "expired",  "blocked", "endpoint_disabled"};

bool has_tenant(const Call& call) {
  return !call.request.path_parameters.empty() && call.request.path_parameters.front().name == "tenant";
}

}  // namespace

bool is_cause(std::string_view text) {
  return std::find(kCauses.begin(), kCauses.end(), text) != kCauses.end();
}

DeliveryQuery read_which(const Call& call, Query& query) {
  DeliveryQuery wanted;
  history::DeliveryFilter& filter = wanted.filter;
  if (has_tenant(call)) filter.tenant = call.tenant();
  wanted.endpoint = query.value("endpoint");
  wanted.event = query.value("event");
  filter.type = query.pattern("type");
  filter.limit = query.limit();
  filter.after = query.after();
  if (wanted.event && !filter.tenant && !model::EventId::from_public_id(*wanted.event))
    query.reject("event", "custom event IDs are unique only within a tenant; use /v1/tenants/{tenant}/…");
  return wanted;
}

DeliveryQuery read_delivery_query(const Call& call, Query& query) {
  DeliveryQuery wanted = read_which(call, query);
  history::DeliveryFilter& filter = wanted.filter;
  filter.subject = query.value("subject");
  if (const auto status = query.value("status")) {
    filter.status = history::parse_delivery_status(*status);
    if (!filter.status)
      query.reject("status",
                   "must be one of: pending, processing, retrying, delivered, dead_letter, canceled");
  }
  filter.before.bytes.fill(0xFF);
  const auto [since, until] = query.range();
  if (since) filter.from = model::id_floor(*since);
  if (until) filter.before = model::id_floor(*until);
  return wanted;
}

runtime::Task<base::Result<history::LaneRef, http::Problem>> find_lane(pg::Link& link,
                                                                       std::optional<model::TenantId> tenant,
                                                                       std::string endpoint) {
  pg::RowList<history::sql::LaneRow> rows;
  if (tenant)
    rows = co_await link.run(history::sql::lane_of_endpoint{.tenant = *tenant, .public_id = endpoint});
  else
    rows = co_await link.run(history::sql::lanes_by_public_id{.public_id = endpoint});
  if (rows.empty()) co_return base::Failure{unknown("endpoint")};
  if (rows.size() > 1)
    co_return base::Failure{
        invalid({{"endpoint", "several tenants have an endpoint with this ID; use /v1/tenants/{tenant}/…"}})};
  const auto row = rows.front();
  co_return history::LaneRef{{row.id}, row.bucket, row.is_strict, std::string(row.delivery_tail)};
}

runtime::Task<base::Result<std::optional<history::DeliveryFilter>, http::Problem>> resolve(
    pg::Link& link, DeliveryQuery wanted) {
  history::DeliveryFilter& filter = wanted.filter;
  if (filter.tenant) {
    const std::optional<registry::Tenant> known = co_await registry::find_tenant(link, *filter.tenant);
    if (!known) co_return base::Failure{unknown("tenant")};
  }
  if (wanted.endpoint) {
    auto lane = co_await find_lane(link, filter.tenant, *wanted.endpoint);
    if (!lane) co_return base::Failure{lane.error()};
    filter.endpoint = std::move(*lane);
  }
  if (wanted.event) {
    filter.event = model::EventId::from_public_id(*wanted.event);
    if (filter.tenant) {
      std::optional<base::Uuid> uuid;
      if (filter.event) uuid = filter.event->uuid;
      const auto rows = co_await link.run(
          history::sql::find_event{.tenant = *filter.tenant, .public_id = *wanted.event, .id = uuid});
      if (rows.empty()) co_return std::optional<history::DeliveryFilter>();
      filter.event = model::EventId{rows.front().id};
    }
  }
  co_return std::optional<history::DeliveryFilter>(std::move(filter));
}

}  // namespace postrider::api
