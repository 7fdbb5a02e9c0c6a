// Outcomes by event type, and of tenants that the operator has listed. Counted from the rollup counts every
// few seconds, so that sending does not pay for it. Used on one loop.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/delivery/report/rollup_counts.hpp"
#include "postrider/telemetry/metrics.hpp"

namespace postrider::delivery {

class TrafficMetrics {
 public:
  static constexpr size_t kTypesMax = 200;  // event types with series of their own; the rest is "other"

  TrafficMetrics(const telemetry::Metrics& all, const std::vector<model::TenantId>& tenants);

  void add(const RollupRow& row);

 private:
  struct Series {
    telemetry::Counter delivered, retrying, dead_letter, first_attempt_successes;
    void add(const RollupCounts& counts) const;
  };
  Series series_of_type(const std::string& type) const;
  Series series_of_tenant(const std::string& tenant) const;

  const telemetry::Metrics& all_;
  std::map<std::string, Series, std::less<>> types_, tenants_;
};

}  // namespace postrider::delivery
