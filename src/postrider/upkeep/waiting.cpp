#include "postrider/upkeep/waiting.hpp"

#include "postrider/base/time.hpp"
#include "postrider/telemetry/log.hpp"
#include "postrider/upkeep/waiting.sql.hpp"

namespace postrider::upkeep {

namespace {

void log_endpoint(const char* event, const sql::expire_waiting::Row& row, int64_t deliveries) {
  telemetry::log_warn(event)
      .field("tenant_id", row.tenant_id.value())
      .field("endpoint_id", row.public_id.value())
      .field("waiting_for", row.what.value())
      .field("deliveries", deliveries)
      .field("oldest_at", base::to_rfc3339(row.oldest_at.value()));
}

}  // namespace

runtime::Task<int64_t> expire_waiting(pg::Link& link, std::chrono::seconds retain_events) {
  const auto rows = co_await link.run(sql::expire_waiting{.retain_seconds = retain_events.count()});
  for (const auto& row : rows) {
    if (!row.tenant_id) continue;  // nothing was changed
    if (row.is_new.value()) log_endpoint("deliveries_expiring", row, row.deliveries.value());
    if (row.expired.value() > 0) log_endpoint("deliveries_canceled_by_retention", row, row.expired.value());
  }
  co_return rows.front().waiting;
}

}  // namespace postrider::upkeep
