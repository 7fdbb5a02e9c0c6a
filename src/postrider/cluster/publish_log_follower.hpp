// Follows the publish log: what other nodes committed for our buckets.
//
// Read with a snapshot cursor: rows whose transaction was not visible in the previous snapshot. "Id greater
// than the last one" would miss transactions that commit late.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "postrider/model/ids.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/pg/snapshot_cursor.hpp"
#include "postrider/runtime/service.hpp"

namespace postrider::cluster {

struct PublishLogEvents {
  struct Found {
    model::DeliveryId first, last;
    std::vector<int> buckets;
  };
  std::function<void(Found)> found;
  // The log may have been trimmed past the cursor, or the cursor is invalid: read everything again.
  std::function<void()> missed;
};

class PublishLogFollower : public runtime::Service {
 public:
  static constexpr std::chrono::milliseconds kInterval{100};
  // Rows of the log are kept for longer than this (upkeep), so a reader that was away less has missed
  // nothing.
  static constexpr std::chrono::minutes kAwayMax{5};

  PublishLogFollower(runtime::Loop& loop, pg::Link& link, model::NodeId self, PublishLogEvents events);

  // Takes the first snapshot. Buckets taken after it miss nothing.
  runtime::Task<void> begin();

 private:
  runtime::Task<runtime::SteadyTime> pass(runtime::SteadyTime now) override;

  pg::Link& link_;
  model::NodeId self_;
  PublishLogEvents events_;
  pg::SnapshotCursor cursor_;
  base::SteadyTime read_at_{};
  uint64_t connection_ = 0;  // through which the cursor was read
};

}  // namespace postrider::cluster
