#include "postrider/inbox/duties.hpp"

#include <utility>

#include "postrider/inbox/messages.sql.hpp"
#include "postrider/inbox/store.sql.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::inbox {

using runtime::Task;

Duties::Duties(runtime::Loop& loop, pg::Link& link, Rejections& rejections, const telemetry::Metrics& metrics,
               Options options)
    : loop_(loop),
      link_(link),
      rejections_(rejections),
      metrics_(metrics),
      options_(options),
      wake_timer_(loop),
      wakeup_(loop) {}

void Duties::start() {
  tasks_.spawn(run());
}

void Duties::wake(std::vector<SourceId> sources) {
  loop_.post([this, woken = std::move(sources)] { wake_soon(woken); });
}

void Duties::wake_soon(const std::vector<SourceId>& sources) {
  if (is_stopping_) return;
  to_wake_.insert(sources.begin(), sources.end());
  if (!wake_timer_.is_set()) wake_timer_.call_after(kWakeInterval, [this] { tasks_.spawn(notify()); });
}

Task<void> Duties::notify() {
  pg::Params params(to_wake_);
  to_wake_.clear();
  try {
    co_await link_.run_one(sql::wake_consumers, std::move(params));
  } catch (const pg::Error& error) {
    // Consumers poll, too.
    telemetry::log_debug("inbox_wake_failed").field("error", error.what());
  }
}

Task<void> Duties::run_once() {
  try {
    auto written = rejections_.write(link_);
    co_await written;
    if (!options_.measures) co_return;
    auto measured = measure();
    co_await measured;
  } catch (const pg::Error& error) {
    telemetry::log_warn("inbox_duty_failed").field("error", error.what());
  }
}

Task<void> Duties::measure() {
  const auto [lags, depths] = co_await link_.run(sql::inbox_lag{}, sql::inbox_depth{});
  for (const auto& row : lags)
    if (const auto* lag = metrics_.inbox_lag_seconds.find(row.work)) lag->set(row.seconds);
  if (!depths.empty()) metrics_.inbox_depth.set(static_cast<double>(depths.front().messages));
}

Task<void> Duties::run() {
  while (!is_stopping_) {
    co_await wakeup_.wait_for(kWriteInterval);
    auto task = run_once();
    co_await task;
  }
}

Task<void> Duties::stop() {
  is_stopping_ = true;
  wake_timer_.cancel();
  wakeup_.notify();
  co_await tasks_.join();
}

}  // namespace postrider::inbox
