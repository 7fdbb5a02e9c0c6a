// Wakes other nodes after this one committed: at most one NOTIFY per few milliseconds, never inside a
// transaction of publish or settle (NOTIFY serialises every commit of the instance), and none while this node
// is alone.
#pragma once

#include <chrono>

#include "postrider/pg/link.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::cluster {

class PeerNotifier {
 public:
  static constexpr std::chrono::milliseconds kInterval{5};

  PeerNotifier(runtime::Loop& loop, pg::Link& link) : link_(link), timer_(loop) {}

  void notify_soon();
  runtime::Task<void> stop();

 private:
  runtime::Task<void> notify();

  pg::Link& link_;
  runtime::Timer timer_;
  runtime::TaskGroup tasks_;
};

}  // namespace postrider::cluster
