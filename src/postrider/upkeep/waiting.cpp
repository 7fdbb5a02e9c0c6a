#include "postrider/upkeep/waiting.hpp"

#include <string>
#include <utility>

#include "postrider/base/time.hpp"
#include "postrider/telemetry/log.hpp"
#include "postrider/upkeep/waiting.sql.hpp"

namespace postrider::upkeep {

namespace {

enum Column : size_t { waiting, tenant, endpoint, what, deliveries, oldest_at, expired, is_new };

void log_endpoint(const char* event, const pg::Rows& rows, size_t row, Column count) {
  telemetry::log_warn(event)
      .field("tenant_id", rows.get<std::string_view>(row, tenant))
      .field("endpoint_id", rows.get<std::string_view>(row, endpoint))
      .field("waiting_for", rows.get<std::string_view>(row, what))
      .field("deliveries", rows.get<int64_t>(row, count))
      .field("oldest_at", base::to_rfc3339(rows.get<base::Timestamp>(row, oldest_at)));
}

}  // namespace

runtime::Task<int64_t> expire_waiting(pg::Link& link, std::chrono::seconds retain_events) {
  pg::Params params(int64_t{retain_events.count()});
  const pg::Rows rows = co_await link.run_one(sql::expire_waiting, std::move(params));
  for (size_t row = 0; row < rows.size(); ++row) {
    if (rows.is_null(row, tenant)) continue;
    if (rows.get<bool>(row, is_new)) log_endpoint("deliveries_expiring", rows, row, deliveries);
    if (rows.get<int64_t>(row, expired) > 0)
      log_endpoint("deliveries_canceled_by_retention", rows, row, expired);
  }
  co_return rows.get<int64_t>(0, waiting);
}

}  // namespace postrider::upkeep
