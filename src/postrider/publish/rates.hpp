// How fast tenants may publish. A rate is learned from the tenant's row each time one of its events is
// written, so a limit costs no look-up, binds from the second publish on, and follows changes by itself.
// Shared by the publishers of a node; any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "postrider/base/time.hpp"
#include "postrider/base/token_bucket.hpp"
#include "postrider/model/ids.hpp"

namespace postrider::publish {

class PublishRates {
 public:
  // False when the tenant's rate is used up. Bursts of up to a second's worth, but at least one event.
  bool try_take(const model::TenantId& tenant, base::SteadyTime now);
  // What is left of a limit, for the caller to know; nothing without a limit.
  struct Allowance {
    double rate_per_second;
    int64_t remaining;                // whole ones
    std::chrono::seconds next_after;  // until one more is there, at least 1 when none is left
  };
  std::optional<Allowance> allowance(const model::TenantId& tenant, base::SteadyTime now);
  void learn(const model::TenantId& tenant, std::optional<double> rate_per_second, base::SteadyTime now);

 private:
  std::mutex mutex_;
  std::unordered_map<model::TenantId, base::TokenBucket> buckets_;  // only tenants with a limit
};

}  // namespace postrider::publish
