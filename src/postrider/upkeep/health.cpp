#include "postrider/upkeep/health.hpp"

#include <optional>
#include <string>

#include "postrider/model/ids.hpp"
#include "postrider/telemetry/log.hpp"
#include "postrider/upkeep/health.sql.hpp"

namespace postrider::upkeep {

namespace {
constexpr int kAtOnce = 200;
}  // namespace

runtime::Task<int> report_health(pg::Link& link, std::chrono::seconds disable_after) {
  const int64_t span = disable_after.count();
  pg::Params which(span, kAtOnce);
  const pg::Rows due = co_await link.run_one(sql::endpoints_to_report, std::move(which));
  int told = 0;
  for (size_t i = 0; i < due.size(); ++i) {
    const model::EndpointId endpoint{due.get<base::Uuid>(i, 0)};
    pg::Params change(endpoint.uuid, due.get<int32_t>(i, 1), due.get<int32_t>(i, 2), span);
    const pg::Rows row = co_await link.run_one(sql::report_endpoint, std::move(change));
    const auto kind = row.get<std::optional<std::string>>(0, 0);
    if (!kind) continue;
    ++told;
    telemetry::log_info("endpoint_health")
        .field("endpoint_id", endpoint.public_id())
        .field("event_type", *kind);
  }
  co_return told;
}

runtime::Task<int> report_dead_letters(pg::Link& link) {
  int told = 0, count = 0;
  do {
    pg::Params at_most(kAtOnce);
    const pg::Rows row = co_await link.run_one(sql::report_dead_letters, std::move(at_most));
    count = row.get<int32_t>(0, 0);
    told += count;
  } while (count > 0);
  co_return told;
}

}  // namespace postrider::upkeep
