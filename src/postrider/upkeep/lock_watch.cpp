#include "postrider/upkeep/lock_watch.hpp"

#include "postrider/pg/blockers.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::upkeep {

namespace {
using runtime::Task;
constexpr std::chrono::seconds kInterval{1};
}  // namespace

Task<runtime::SteadyTime> LockWatch::pass(runtime::SteadyTime) {
  try {
    co_await look();
  } catch (const pg::Error& error) {
    telemetry::log_debug("lock_watch_failed").field("error", error.what());
  }
  co_return base::BootClock::now() + kInterval;
}

Task<int> LockWatch::look() {
  auto asking = pg::blocked_sessions(link_.connection());
  const std::vector<pg::Blocked> blocked = co_await asking;
  std::set<Pair> now, still_logged;
  int lines = 0;
  for (const pg::Blocked& each : blocked) {
    const Pair pair{each.pid, each.by_pid};
    now.insert(pair);
    if (logged_.contains(pair)) {
      still_logged.insert(pair);
    } else if (seen_.contains(pair)) {
      still_logged.insert(pair);
      ++lines;
      telemetry::log_warn("blocked_by_transaction")
          .field("service", each.service)
          .field("pid", each.by_pid)
          .field("role", each.by_role);
    }
  }
  seen_ = std::move(now);
  logged_ = std::move(still_logged);
  co_return lines;
}

}  // namespace postrider::upkeep
