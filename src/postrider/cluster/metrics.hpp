#pragma once

#include "postrider/telemetry/metrics.hpp"

namespace postrider::cluster {

struct Metrics {
  explicit Metrics(const telemetry::Metrics& all)
      : leases_held(all.gauge("webhook_leases_held", "Buckets that this node serves.")) {}

  telemetry::Gauge leases_held;
};

}  // namespace postrider::cluster
