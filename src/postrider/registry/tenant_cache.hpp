// Limits of tenants that published a moment ago. One per loop, used on its thread only.
//
// Entries are dropped at changes of the control log and in any case after `lifetime`. Only tenants that exist
// are kept, so a new tenant can publish at once; whether a tenant has endpoints, and ordered ones, is for the
// publish transaction to see.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>

#include "postrider/base/time.hpp"
#include "postrider/model/endpoint_enums.hpp"
#include "postrider/model/ids.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/registry/control_log.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::registry {

struct TenantLimits {
  model::TenantStatus status = model::TenantStatus::active;
  std::optional<double> publish_rate_per_second;
  std::optional<int32_t> payload_bytes_max;
};

class TenantCache {
 public:
  struct Options {
    size_t entries_max = 20'000;
    std::chrono::milliseconds lifetime{5'000};
  };
  TenantCache() = default;
  explicit TenantCache(Options options) : options_(options) {}

  // The cached entry, without querying the database.
  std::optional<TenantLimits> find(const model::TenantId& tenant, base::SteadyTime now) const;
  // Queries the database and caches the result. No value for a tenant that does not exist or is deleted.
  runtime::Task<std::optional<TenantLimits>> load(pg::Link& link, model::TenantId tenant);

  void apply(std::span<const Change> changes);
  void clear();
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    TenantLimits limits;
    base::SteadyTime found_at;
  };
  Options options_;
  uint64_t generation_ = 0;  // counts changes, so that a result from before one is not cached after it
  std::unordered_map<model::TenantId, Entry> entries_;
};

}  // namespace postrider::registry
