// When a drain stops waiting for the database: once it has been unavailable for longer than it takes to
// reconnect.
#pragma once

#include <algorithm>

#include "postrider/pg/link.hpp"

namespace postrider::delivery {

class OutageClock {
 public:
  explicit OutageClock(const pg::Link& link) : link_(link) {}

  bool is_too_long() {
    const auto now = base::BootClock::now();
    if (link_.is_up()) up_at_ = now;
    return now - up_at_ > kOutageMax;
  }
  static base::SteadyTime next_look(base::SteadyTime deadline) {
    return std::min(deadline, base::BootClock::now() + kInterval);
  }

 private:
  static constexpr std::chrono::seconds kOutageMax{3};
  static constexpr std::chrono::milliseconds kInterval{250};

  const pg::Link& link_;
  base::SteadyTime up_at_ = base::BootClock::now();
};

}  // namespace postrider::delivery
