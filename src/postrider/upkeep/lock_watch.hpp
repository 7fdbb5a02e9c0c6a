// Logs whose open transactions postrider waits for: which of its sessions waits, and the process id and role
// of the session that holds the lock. Looks once a second; what waits at two looks in a row is logged once.
// Used on one loop, on a link that does not wait for locks itself.
#pragma once

#include <set>
#include <utility>

#include "postrider/pg/link.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::upkeep {

class LockWatch {
 public:
  LockWatch(runtime::Loop& loop, pg::Link& link) : link_(link), wakeup_(loop) {}

  void start();
  runtime::Task<void> stop();
  // One look; returns how many lines it logged. Throws pg::Error.
  runtime::Task<int> run_once();

 private:
  using Pair = std::pair<int, int>;  // process IDs: the blocked session, the blocking one
  runtime::Task<void> run();

  pg::Link& link_;
  runtime::Wakeup wakeup_;
  runtime::TaskGroup tasks_;
  bool is_stopping_ = false;
  std::set<Pair> seen_, told_;
};

}  // namespace postrider::upkeep
