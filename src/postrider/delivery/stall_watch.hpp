// Notices that the whole process did not run for a while (suspended, or without CPU). A timeout across
// such a gap proves nothing about the endpoint, and a lease may have ended meanwhile without anyone looking.
#pragma once

#include <cstdint>

#include "postrider/runtime/loop.hpp"

namespace postrider::delivery {

class StallWatch {
 public:
  explicit StallWatch(runtime::Loop& loop);
  void stop() { timer_.cancel(); }

  // Whichever comes first after a stall, a timer, a response or the tick, calls this and notices it.
  void look(base::SteadyTime now);

  uint64_t stalls() const { return stalls_; }
  bool has_stalled_since(uint64_t stalls);
  // When the last stall ended; zero if there was none.
  base::SteadyTime woken_at() const { return woken_at_; }

 private:
  void tick();

  runtime::Timer timer_;
  uint64_t stalls_ = 0;
  base::SteadyTime last_look_;
  base::SteadyTime woken_at_{};
};

}  // namespace postrider::delivery
