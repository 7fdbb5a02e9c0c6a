// How long a flush may take before its items are refused. Counted from when the first of them came, since
// those behind a flush that failed have waited already. Pure.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "postrider/base/time.hpp"

namespace postrider::publish {

class Patience {
 public:
  // What has waited too long behind flushes that succeeded still has so long, so that a passing error is
  // repeated.
  static constexpr std::chrono::milliseconds kLate{1'000};

  explicit Patience(std::chrono::milliseconds give_up_after) : give_up_after_(give_up_after) {}

  // Nothing: the time is over and the flush before this one was given up, so it is not even tried. However
  // many flushes wait, they end together.
  std::optional<base::SteadyTime> deadline(base::SteadyTime first_came, base::SteadyTime now) const {
    const base::SteadyTime over = first_came + give_up_after_;
    if (!has_given_up_) return std::max(over, now + std::min(kLate, give_up_after_));
    if (over <= now) return std::nullopt;
    return over;
  }

  void gave_up() { has_given_up_ = true; }
  void succeeded() { has_given_up_ = false; }

 private:
  std::chrono::milliseconds give_up_after_;
  bool has_given_up_ = false;
};

}  // namespace postrider::publish
