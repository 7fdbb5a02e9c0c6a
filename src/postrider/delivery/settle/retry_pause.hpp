// The pause after each failure in a row: twice as long as the last one, up to a limit.
#pragma once

#include <algorithm>
#include <chrono>

namespace postrider::delivery {

class RetryPause {
 public:
  struct Limits {
    std::chrono::milliseconds first, longest;
  };
  explicit RetryPause(Limits limits) : limits_(limits), next_(limits.first) {}

  std::chrono::milliseconds after_failure() {
    const auto pause = next_;
    next_ = std::min(2 * next_, limits_.longest);
    return pause;
  }
  void succeeded() { next_ = limits_.first; }

 private:
  Limits limits_;
  std::chrono::milliseconds next_;
};

}  // namespace postrider::delivery
