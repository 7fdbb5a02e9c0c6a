#include "postrider/publish/rates.hpp"

#include <algorithm>
#include <cmath>

namespace postrider::publish {

void PublishRates::Bucket::fill(base::SteadyTime now) {
  if (now <= filled_at) return;
  const std::chrono::duration<double> passed = now - filled_at;
  tokens = std::min(burst(), tokens + passed.count() * rate);
  filled_at = now;
}

bool PublishRates::try_take(const model::TenantId& tenant, base::SteadyTime now) {
  constexpr double kWhole = 1 - 1e-9;  // sums of fractions may end a hair below one
  const std::lock_guard lock(mutex_);
  const auto found = buckets_.find(tenant);
  if (found == buckets_.end()) return true;
  found->second.fill(now);
  if (found->second.tokens < kWhole) return false;
  found->second.tokens -= 1;
  return true;
}

std::optional<PublishRates::Allowance> PublishRates::allowance(const model::TenantId& tenant,
                                                               base::SteadyTime now) {
  const std::lock_guard lock(mutex_);
  const auto found = buckets_.find(tenant);
  if (found == buckets_.end()) return std::nullopt;
  Bucket& bucket = found->second;
  bucket.fill(now);
  const double missing = std::max(0.0, 1 - bucket.tokens);
  return Allowance{
      bucket.rate, static_cast<int64_t>(bucket.tokens + 1e-9),
      std::chrono::seconds(std::max<int64_t>(1, std::llround(std::ceil(missing / bucket.rate))))};
}

void PublishRates::learn(const model::TenantId& tenant, std::optional<double> rate_per_second,
                         base::SteadyTime now) {
  const std::lock_guard lock(mutex_);
  if (!rate_per_second || *rate_per_second <= 0) {
    buckets_.erase(tenant);
    return;
  }
  const auto [found, is_new] = buckets_.try_emplace(tenant, Bucket{*rate_per_second, 0, now});
  Bucket& bucket = found->second;
  if (is_new) {
    bucket.tokens = bucket.burst() - 1;  // the event that taught us
    return;
  }
  bucket.fill(now);
  bucket.rate = *rate_per_second;
  bucket.tokens = std::min(bucket.tokens, bucket.burst());
}

}  // namespace postrider::publish
