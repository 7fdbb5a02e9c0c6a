// Exponential backoff with jitter: each pause is twice as long as the one before, up to a maximum. A pause
// lasts between half and all of that, so that nodes that failed together do not retry together.
#pragma once

#include <algorithm>
#include <chrono>
#include <random>

namespace postrider::base {

class Backoff {
 public:
  struct Limits {
    std::chrono::milliseconds min, max;
  };

  explicit Backoff(Limits limits) : limits_(limits), pause_(limits.min) {}

  std::chrono::milliseconds next() {
    static thread_local std::minstd_rand random{std::random_device{}()};
    const auto pause = pause_;
    pause_ = std::min(2 * pause_, limits_.max);
    return pause / 2 +
           std::chrono::milliseconds(std::uniform_int_distribution<int64_t>(0, pause.count() / 2)(random));
  }
  // The pauses do not get any longer.
  bool is_at_max() const { return pause_ >= limits_.max; }
  void reset() { pause_ = limits_.min; }

 private:
  Limits limits_;
  std::chrono::milliseconds pause_;
};

}  // namespace postrider::base
