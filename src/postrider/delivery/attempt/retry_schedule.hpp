// The delay after a failed attempt.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/base/result.hpp"

namespace postrider::delivery {

// A list of delays whose last one repeats. The formula of the API ({base_seconds, factor, cap_seconds}) is
// unrolled into such a list, so there is only one thing to ask.
class RetrySchedule {
 public:
  static constexpr size_t delays_max = 100;
  static constexpr std::chrono::seconds delay_max = std::chrono::hours(24 * 7);

  RetrySchedule();  // 30 s, 2 m, 10 m, 30 m, 2 h, 6 h, 24 h

  // "null", "[30, 120]" or {"base_seconds": 5, "factor": 2, "cap_seconds": 3600} (factor 2 and cap 24 h
  // unless given). The error is a sentence for its author.
  static base::Result<RetrySchedule, std::string> from_json(std::string_view json);

  // After the first attempt: delay_after(1).
  std::chrono::milliseconds delay_after(int attempt) const;

  bool operator==(const RetrySchedule& other) const { return *delays_ == *other.delays_; }

 private:
  using Delays = std::vector<std::chrono::milliseconds>;
  explicit RetrySchedule(std::shared_ptr<const Delays> delays) : delays_(std::move(delays)) {}

  std::shared_ptr<const Delays> delays_;  // the default ones are shared by all
};

}  // namespace postrider::delivery
