// Decides whether a request body arrives fast enough. Pure: the time is an argument.
//
// Each byte buys time at the lowest rate allowed, but never more than one window ahead of now. So a client
// may pause for a window at most, however fast it was before.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "postrider/base/time.hpp"

namespace postrider::http {

class UploadPace {
 public:
  struct Rule {
    std::chrono::milliseconds window;
    size_t bytes_per_second_min;
  };
  explicit UploadPace(Rule rule) : rule_(rule) {}

  void start(base::SteadyTime now) { deadline_ = now + rule_.window; }
  void received(size_t bytes, base::SteadyTime now) {
    const std::chrono::milliseconds bought(bytes * 1000 / rule_.bytes_per_second_min);
    deadline_ = std::min(deadline_ + bought, now + rule_.window);
  }
  // The deadline for more bytes.
  base::SteadyTime deadline() const { return deadline_; }

 private:
  Rule rule_;
  base::SteadyTime deadline_{};
};

}  // namespace postrider::http
