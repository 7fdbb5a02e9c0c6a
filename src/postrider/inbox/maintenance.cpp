#include "postrider/inbox/maintenance.hpp"

#include <utility>

#include "postrider/inbox/messages.sql.hpp"
#include "postrider/inbox/store.sql.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::inbox {

using runtime::Task;

Maintenance::Maintenance(runtime::Loop& loop, pg::Link& link, Rejections& rejections,
                         const telemetry::Metrics& metrics, Options options)
    : Service(loop),
      link_(link),
      rejections_(rejections),
      metrics_(metrics),
      options_(options),
      wake_timer_(loop) {}

void Maintenance::wake_consumers(std::vector<SourceId> sources) {
  loop().post([this, woken = std::move(sources)] { wake_soon(woken); });
}

void Maintenance::wake_soon(const std::vector<SourceId>& sources) {
  if (is_stopping()) return;
  to_wake_.insert(sources.begin(), sources.end());
  if (!wake_timer_.is_set()) wake_timer_.call_after(kWakeInterval, [this] { spawn(notify()); });
}

Task<void> Maintenance::notify() {
  const auto sources = std::exchange(to_wake_, {});
  try {
    co_await link_.run(sql::wake_consumers{.sources = sources});
  } catch (const pg::Error& error) {
    // Consumers poll, too.
    telemetry::log_debug("inbox_wake_failed").field("error", error.what());
  }
}

Task<void> Maintenance::record() {
  try {
    co_await rejections_.write(link_);
    if (!options_.measures) co_return;
    co_await measure();
  } catch (const pg::Error& error) {
    telemetry::log_warn("inbox_maintenance_failed").field("error", error.what());
  }
}

Task<void> Maintenance::measure() {
  const auto [lags, depths] = co_await link_.run(sql::inbox_lag{}, sql::inbox_depth{});
  for (const auto& row : lags)
    if (const auto* lag = metrics_.lag_seconds.find(row.work)) lag->set(row.seconds);
  if (!depths.empty()) metrics_.depth.set(static_cast<double>(depths.front().messages));
}

Task<runtime::SteadyTime> Maintenance::pass(runtime::SteadyTime) {
  co_await record();
  co_return base::BootClock::now() + kWriteInterval;
}

Task<void> Maintenance::interrupt() {
  wake_timer_.cancel();
  co_return;
}

}  // namespace postrider::inbox
