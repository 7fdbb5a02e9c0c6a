#pragma once

#include "postrider/telemetry/metrics.hpp"

namespace postrider::registry {

struct Metrics {
  explicit Metrics(const telemetry::Metrics& all)
      : invalid_events(all.counter_by("webhook_invalid_events_total",
                                      "Events that are invalid by the catalogue of event types.", "action",
                                      telemetry::Names{"warned", "rejected"})) {}

  telemetry::Labelled<telemetry::Counter> invalid_events;  // action
};

}  // namespace postrider::registry
