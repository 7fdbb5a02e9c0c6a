#include "postrider/upkeep/health.hpp"

#include "postrider/model/ids.hpp"
#include "postrider/telemetry/log.hpp"
#include "postrider/upkeep/health.sql.hpp"

namespace postrider::upkeep {

namespace {
constexpr int kAtOnce = 200;
}  // namespace

runtime::Task<int> report_health(pg::Link& link, std::chrono::seconds disable_after) {
  const int64_t disable_seconds = disable_after.count();
  const auto due =
      co_await link.run(sql::endpoints_to_report{.disable_seconds = disable_seconds, .rows = kAtOnce});
  int reported = 0;
  for (const auto& change : due) {
    const model::EndpointId endpoint{change.endpoint_id};
    const auto rows = co_await link.run(sql::report_endpoint{.endpoint = change.endpoint_id,
                                                             .was = change.was,
                                                             .stage = change.stage,
                                                             .disable_seconds = disable_seconds});
    const auto event_type = rows.front().event_type;
    if (!event_type) continue;
    ++reported;
    telemetry::log_info("endpoint_health")
        .field("endpoint_id", endpoint.public_id())
        .field("event_type", *event_type);
  }
  co_return reported;
}

runtime::Task<int> report_dead_letters(pg::Link& link) {
  int reported = 0, count = 0;
  do {
    const auto rows = co_await link.run(sql::report_dead_letters{.rows = kAtOnce});
    count = rows.front().reported;
    reported += count;
  } while (count > 0);
  co_return reported;
}

}  // namespace postrider::upkeep
