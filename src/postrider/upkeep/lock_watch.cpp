#include "postrider/upkeep/lock_watch.hpp"

#include "postrider/pg/blockers.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::upkeep {

namespace {
using runtime::Task;
constexpr std::chrono::seconds kInterval{1};
}  // namespace

void LockWatch::start() {
  tasks_.spawn(run());
}

Task<void> LockWatch::run() {
  while (!is_stopping_) {
    try {
      auto look = run_once();
      co_await look;
    } catch (const pg::Error& error) {
      telemetry::log_debug("lock_watch_failed").field("error", error.what());
    }
    if (!is_stopping_) co_await wakeup_.wait_for(kInterval);
  }
}

Task<int> LockWatch::run_once() {
  auto asking = pg::blocked_sessions(link_.connection());
  const std::vector<pg::Blocked> blocked = co_await asking;
  std::set<Pair> now, still_told;
  int lines = 0;
  for (const pg::Blocked& each : blocked) {
    const Pair pair{each.pid, each.by_pid};
    now.insert(pair);
    if (told_.contains(pair)) {
      still_told.insert(pair);
    } else if (seen_.contains(pair)) {
      still_told.insert(pair);
      ++lines;
      telemetry::log_warn("blocked_by_transaction")
          .field("service", each.service)
          .field("pid", each.by_pid)
          .field("role", each.by_role);
    }
  }
  seen_ = std::move(now);
  told_ = std::move(still_told);
  co_return lines;
}

Task<void> LockWatch::stop() {
  is_stopping_ = true;
  wakeup_.notify();
  co_await tasks_.join();
}

}  // namespace postrider::upkeep
