// Rate limits per key, such as a tenant's publish rate or the requests of an API key. A rate is set each time
// its row is read, so a limit costs no lookup, applies from the second use on, and follows changes. Any
// thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "postrider/base/time.hpp"
#include "postrider/base/token_bucket.hpp"

namespace postrider::base {

class RateLimiter {
 public:
  // False if the key's rate is exceeded. Bursts of up to a second's worth, but at least one.
  bool try_take(const std::string& key, SteadyTime now);
  // The rest of a limit, to show it to the caller; no value without a limit.
  struct Allowance {
    double rate_per_second;
    int64_t remaining;                // whole ones
    std::chrono::seconds next_after;  // until there is one more, at least 1 if none is left
  };
  std::optional<Allowance> allowance(const std::string& key, SteadyTime now);
  // No rate: no limit. The call from which a new rate was read counts.
  void set_rate(const std::string& key, std::optional<double> rate_per_second, SteadyTime now);

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, TokenBucket> buckets_;  // only keys with a limit
};

}  // namespace postrider::base
