#include "postrider/base/rate_limiter.hpp"

#include <algorithm>

namespace postrider::base {

bool RateLimiter::try_take(const std::string& key, SteadyTime now) {
  const std::lock_guard lock(mutex_);
  const auto found = buckets_.find(key);
  return found == buckets_.end() || found->second.try_take(now);
}

std::optional<RateLimiter::Allowance> RateLimiter::allowance(const std::string& key, SteadyTime now) {
  const std::lock_guard lock(mutex_);
  const auto found = buckets_.find(key);
  if (found == buckets_.end()) return std::nullopt;
  TokenBucket& bucket = found->second;
  const auto wait = std::chrono::ceil<std::chrono::seconds>(bucket.ready_at(now) - now);
  return Allowance{bucket.rate(), static_cast<int64_t>(bucket.tokens(now) + 1e-9),
                   std::max(std::chrono::seconds(1), wait)};
}

void RateLimiter::set_rate(const std::string& key, std::optional<double> rate_per_second, SteadyTime now) {
  const std::lock_guard lock(mutex_);
  if (!rate_per_second || *rate_per_second <= 0) {
    buckets_.erase(key);
    return;
  }
  const auto [found, is_new] = buckets_.try_emplace(key, *rate_per_second, now);
  if (is_new)
    found->second.try_take(now);
  else
    found->second.set_rate(*rate_per_second, now);
}

}  // namespace postrider::base
