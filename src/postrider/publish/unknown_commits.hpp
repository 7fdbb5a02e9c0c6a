// Transactions whose connection was lost during the commit. Their deliveries may be in the table without a
// handoff: now, or later, while a backend still works on the transaction. So every owner is notified to read
// the table at once, again as long as a backend may commit, and once more when none can.
//
// One loop.
#pragma once

#include <deque>
#include <optional>

#include "postrider/base/backoff.hpp"
#include "postrider/model/ids.hpp"
#include "postrider/pg/link.hpp"

namespace postrider::publish {

class UnknownCommits {
 public:
  explicit UnknownCommits(pg::Link& link);

  // Right after the loss: the transaction may be one of any connection that the link has lost by now.
  void add(model::DeliveryRange range);
  // Stops looking. What is left is found by the scans of the buckets.
  runtime::Task<void> stop();

 private:
  struct Entry {
    model::DeliveryRange range;
    std::deque<pg::Backend> backends;
    std::optional<base::Timestamp> since;  // of the first look
    base::SteadyTime notify_at;
    base::Backoff notify_pauses;
  };
  runtime::Task<void> run();
  runtime::Task<void> look();
  runtime::Task<bool> may_commit(Entry& entry);

  pg::Link& link_;
  std::deque<Entry> entries_;
  base::Backoff looks_;
  runtime::Wakeup pause_;
  runtime::TaskGroup running_;
  bool is_stopping_ = false;
};

}  // namespace postrider::publish
