// Until when this node may send. One writer (the keeper of leases), many readers on other threads.
#pragma once

#include <atomic>

#include "postrider/base/time.hpp"

namespace postrider::delivery {

class LeaseClock {
 public:
  void extend_to(base::SteadyTime until) { until_ = until.time_since_epoch().count(); }
  void end() { until_ = 0; }
  bool is_valid(base::SteadyTime now) const { return now.time_since_epoch().count() < until_; }

 private:
  std::atomic<int64_t> until_{0};
};

}  // namespace postrider::delivery
