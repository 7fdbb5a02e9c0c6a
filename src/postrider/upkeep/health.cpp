#include "postrider/upkeep/health.hpp"

#include <string_view>

#include "postrider/base/check.hpp"
#include "postrider/model/ids.hpp"
#include "postrider/telemetry/log.hpp"
#include "postrider/upkeep/health.sql.hpp"

namespace postrider::upkeep {

namespace {
constexpr int kAtOnce = 200;

void log_health(const model::EndpointId& endpoint, std::string_view event_type) {
  telemetry::log_info("endpoint_health")
      .field("endpoint_id", endpoint.public_id())
      .field("event_type", event_type);
}
}  // namespace

HealthOptions HealthOptions::from(const config::Config& config) {
  return {.disable_after = config.disable_after,
          .first_notice_after = config.first_notice_after,
          .first_notice_failures = config.first_notice_failures,
          .degraded_below = config.degraded_below,
          .degraded_attempts = config.degraded_attempts};
}

void HealthOptions::validate() const {
  using namespace std::chrono_literals;
  CHECK(disable_after >= 0s && first_notice_after >= 0s && first_notice_failures > 0 && degraded_below >= 0 &&
        degraded_below <= 100 && degraded_attempts > 0);
}

runtime::Task<int> report_health(pg::Link& link, const HealthOptions& options) {
  const int64_t disable_seconds = options.disable_after.count();
  const auto due =
      co_await link.run(sql::endpoints_to_report{.disable_seconds = disable_seconds,
                                                 .first_seconds = options.first_notice_after.count(),
                                                 .first_failures = options.first_notice_failures,
                                                 .rows = kAtOnce});
  const auto pauses = co_await link.run(sql::report_pauses{.rows = kAtOnce});
  int reported = pauses.front().reported;
  for (const auto& change : due) {
    const model::EndpointId endpoint{change.endpoint_id};
    const auto rows = co_await link.run(sql::report_endpoint{.endpoint = change.endpoint_id,
                                                             .was = change.was,
                                                             .stage = change.stage,
                                                             .disable_seconds = disable_seconds});
    const auto event_type = rows.front().event_type;
    if (!event_type) continue;
    ++reported;
    log_health(endpoint, *event_type);
  }
  co_return reported;
}

runtime::Task<int> report_degraded(pg::Link& link, const HealthOptions& options) {
  const auto changed = co_await link.run(sql::endpoints_to_degrade{
      .below = options.degraded_below, .attempts_min = options.degraded_attempts, .rows = kAtOnce});
  int reported = 0;
  for (const auto& change : changed) {
    const auto rows = co_await link.run(sql::report_degraded{.endpoint = change.endpoint_id,
                                                             .is_degraded = change.is_degraded,
                                                             .attempts = change.attempts,
                                                             .failed = change.failed});
    const auto event_type = rows.front().event_type;
    if (!event_type) continue;
    ++reported;
    const model::EndpointId endpoint{change.endpoint_id};
    log_health(endpoint, *event_type);
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
