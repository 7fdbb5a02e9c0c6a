#pragma once

#include "postrider/telemetry/metrics.hpp"

namespace postrider::publish {

struct Metrics {
  explicit Metrics(const telemetry::Metrics& all)
      : events_created(all.counter("webhook_events_created_total", "Events accepted and committed.")),
        batch_items(all.histogram("webhook_batch_items", "Items per database batch.",
                                  {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}, {{"batch", "publish"}})) {}

  telemetry::Counter events_created;
  telemetry::Histogram batch_items;
};

}  // namespace postrider::publish
