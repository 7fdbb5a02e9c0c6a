#include "postrider/delivery/follow.hpp"

#include <utility>

#include "postrider/delivery/follow.sql.hpp"
#include "postrider/pg/error.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::delivery {

LogFollower::LogFollower(runtime::Loop& loop, pg::Link& link, model::NodeId self, FollowerEvents events)
    : link_(link), self_(self), events_(std::move(events)), wakeup_(loop) {}

runtime::Task<void> LogFollower::begin() {
  read_at_ = base::BootClock::now();
  connection_ = link_.connection_number();
  const pg::Rows row = co_await link_.run_one(sql::current_snapshot);
  cursor_ = pg::SnapshotCursor::parse(row.get<std::string_view>(0, 0));
}

void LogFollower::start() {
  tasks_.spawn(run());
}

runtime::Task<void> LogFollower::run() {
  while (!is_stopping_) {
    co_await run_once();
    if (!is_stopping_) co_await wakeup_.wait_for(kInterval);
  }
}

runtime::Task<void> LogFollower::run_once() {
  const auto before = base::BootClock::now();
  try {
    const uint64_t connection = link_.connection_number();
    const std::string xmax = std::to_string(cursor_.xmax);
    pg::Params params(xmax, cursor_.in_progress, self_.uuid);
    const pg::Rows rows = co_await link_.run_one(sql::read_log, std::move(params));
    auto now = pg::SnapshotCursor::parse(rows.get<std::string_view>(0, 0));
    // A server that crashed, or a standby that had not received everything, gives transaction ids again that
    // the cursor has seen end: whatever committed under such an id would never be found.
    const bool may_be_other_server = connection != connection_ || now.xmax < cursor_.xmax;
    if (may_be_other_server || before - read_at_ > kAwayMax) events_.missed();
    read_at_ = before;
    connection_ = connection;
    cursor_ = std::move(now);
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows.is_null(i, 1)) continue;
      events_.found(
          {{rows.get<base::Uuid>(i, 1)}, {rows.get<base::Uuid>(i, 2)}, rows.get<std::vector<int>>(i, 3)});
    }
  } catch (const pg::Error& error) {
    if (error.kind() != pg::Kind::unavailable)
      telemetry::log_warn("publish_log_failed").field("error", error.what());
  }
}

runtime::Task<void> LogFollower::stop() {
  is_stopping_ = true;
  wakeup_.notify();
  co_await tasks_.join();
}

}  // namespace postrider::delivery
