#include "postrider/cluster/publish_log_follower.hpp"

#include <utility>

#include "postrider/cluster/publish_log.sql.hpp"
#include "postrider/pg/error.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::cluster {

PublishLogFollower::PublishLogFollower(runtime::Loop& loop, pg::Link& link, model::NodeId self,
                                       PublishLogEvents events)
    : Service(loop), link_(link), self_(self), events_(std::move(events)) {}

runtime::Task<void> PublishLogFollower::begin() {
  read_at_ = base::BootClock::now();
  connection_ = link_.connection_number();
  const auto current = co_await link_.run(sql::current_snapshot{});
  cursor_ = pg::SnapshotCursor::parse(current.front().snapshot);
}

runtime::Task<runtime::SteadyTime> PublishLogFollower::pass(runtime::SteadyTime before) {
  try {
    const uint64_t connection = link_.connection_number();
    const std::string xmax = std::to_string(cursor_.xmax);
    const sql::read_log since{.xmax = xmax, .in_progress = cursor_.in_progress, .node = self_.uuid};
    const auto rows = co_await link_.run(since);
    auto now = pg::SnapshotCursor::parse(rows.front().snapshot);
    // A server that crashed, or a standby that had not received everything, gives transaction ids again that
    // the cursor has seen end: whatever committed under such an id would never be found.
    const bool may_be_other_server = connection != connection_ || now.xmax < cursor_.xmax;
    if (may_be_other_server || before - read_at_ > kAwayMax) events_.missed();
    read_at_ = before;
    connection_ = connection;
    cursor_ = std::move(now);
    for (const auto& row : rows)
      if (row.first_id) events_.found({{*row.first_id}, {*row.last_id}, *row.buckets});
  } catch (const pg::Error& error) {
    if (error.kind() != pg::Kind::unavailable)
      telemetry::log_warn("publish_log_failed").field("error", error.what());
  }
  co_return base::BootClock::now() + kInterval;
}

}  // namespace postrider::cluster
