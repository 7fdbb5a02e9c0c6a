// Tells when a drain should give up, because the database has been away for longer than it takes to connect
// again.
#pragma once

#include <algorithm>

#include "postrider/pg/link.hpp"

namespace postrider::delivery {

class AwayClock {
 public:
  explicit AwayClock(const pg::Link& link) : link_(link) {}

  bool is_too_long() {
    const auto now = base::BootClock::now();
    if (link_.is_up()) up_at_ = now;
    return now - up_at_ > kAwayMax;
  }
  static base::SteadyTime next_look(base::SteadyTime deadline) {
    return std::min(deadline, base::BootClock::now() + kInterval);
  }

 private:
  static constexpr std::chrono::seconds kAwayMax{3};
  static constexpr std::chrono::milliseconds kInterval{250};

  const pg::Link& link_;
  base::SteadyTime up_at_ = base::BootClock::now();
};

}  // namespace postrider::delivery
