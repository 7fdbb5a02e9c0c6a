#include "postrider/publish/rates.hpp"

#include <algorithm>

namespace postrider::publish {

bool PublishRates::try_take(const model::TenantId& tenant, base::SteadyTime now) {
  const std::lock_guard lock(mutex_);
  const auto found = buckets_.find(tenant);
  return found == buckets_.end() || found->second.try_take(now);
}

std::optional<PublishRates::Allowance> PublishRates::allowance(const model::TenantId& tenant,
                                                               base::SteadyTime now) {
  const std::lock_guard lock(mutex_);
  const auto found = buckets_.find(tenant);
  if (found == buckets_.end()) return std::nullopt;
  base::TokenBucket& bucket = found->second;
  const auto wait = std::chrono::ceil<std::chrono::seconds>(bucket.ready_at(now) - now);
  return Allowance{bucket.rate(), static_cast<int64_t>(bucket.tokens(now) + 1e-9),
                   std::max(std::chrono::seconds(1), wait)};
}

void PublishRates::learn(const model::TenantId& tenant, std::optional<double> rate_per_second,
                         base::SteadyTime now) {
  const std::lock_guard lock(mutex_);
  if (!rate_per_second || *rate_per_second <= 0) {
    buckets_.erase(tenant);
    return;
  }
  const auto [found, is_new] = buckets_.try_emplace(tenant, *rate_per_second, now);
  if (is_new)
    found->second.try_take(now);  // the event that taught us
  else
    found->second.set_rate(*rate_per_second, now);
}

}  // namespace postrider::publish
