// Logs whose open transactions postrider waits for: which of its sessions waits, and the process id and role
// of the session that holds the lock. Looks once a second; what waits at two looks in a row is logged once.
// Used on one loop, on a link that does not wait for locks itself.
#pragma once

#include <set>
#include <utility>

#include "postrider/pg/link.hpp"
#include "postrider/runtime/service.hpp"

namespace postrider::upkeep {

class LockWatch : public runtime::Service {
 public:
  LockWatch(runtime::Loop& loop, pg::Link& link) : Service(loop), link_(link) {}

  // One look; returns how many lines it logged. Throws pg::Error.
  runtime::Task<int> look();

 private:
  using Pair = std::pair<int, int>;  // process IDs: the blocked session, the blocking one
  runtime::Task<runtime::SteadyTime> pass(runtime::SteadyTime now) override;

  pg::Link& link_;
  std::set<Pair> seen_, logged_;
};

}  // namespace postrider::upkeep
