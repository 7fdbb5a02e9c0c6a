// A rate limit: `rate` per second, in bursts of at most max(1, rate). Pure: the clock comes in as an
// argument. A rate below kRateMin is raised to it, so that the wait for the next token is a time that a clock
// can represent.
#pragma once

#include <algorithm>
#include <chrono>

#include "postrider/base/time.hpp"

namespace postrider::base {

class TokenBucket {
 public:
  static constexpr double kRateMin = 1e-6;  // one in eleven days

  // Starts full.
  TokenBucket(double rate_per_second, SteadyTime now)
      : rate_(usable(rate_per_second)), tokens_(burst()), filled_at_(now) {}

  bool try_take(SteadyTime now) {
    fill(now);
    if (tokens_ < kWhole) return false;
    tokens_ = std::max(0.0, tokens_ - 1);
    return true;
  }

  double rate() const { return rate_; }
  // The tokens available now.
  double tokens(SteadyTime now) {
    fill(now);
    return tokens_;
  }

  // The token was not used after all.
  void put_back() { tokens_ = std::min(burst(), tokens_ + 1); }

  // When try_take() will succeed; not later than `now` if it would now.
  SteadyTime ready_at(SteadyTime now) {
    fill(now);
    if (tokens_ >= kWhole) return now;
    const std::chrono::duration<double> wait((1 - tokens_) / rate_);
    return now + std::chrono::ceil<std::chrono::nanoseconds>(wait);
  }

  // Keeps the tokens in the bucket, so that changing the limit grants no burst.
  void set_rate(double rate_per_second, SteadyTime now) {
    fill(now);
    rate_ = usable(rate_per_second);
    tokens_ = std::min(tokens_, burst());
  }

 private:
  static constexpr double kWhole = 1 - 1e-9;  // sums of fractions may end slightly below one

  static double usable(double rate) { return rate > kRateMin ? rate : kRateMin; }  // not a number: the least
  double burst() const { return std::max(1.0, rate_); }
  void fill(SteadyTime now) {
    if (now <= filled_at_) return;
    const std::chrono::duration<double> passed = now - filled_at_;
    tokens_ = std::min(burst(), tokens_ + passed.count() * rate_);
    filled_at_ = now;
  }

  double rate_;
  double tokens_;
  SteadyTime filled_at_;
};

}  // namespace postrider::base
