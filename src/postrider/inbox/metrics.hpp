// The metrics of the inbox.
#pragma once

#include "postrider/telemetry/metrics.hpp"

namespace postrider::inbox {

struct Metrics {
  explicit Metrics(const telemetry::Metrics& all);

  telemetry::Labelled<telemetry::Counter> received;   // outcome
  telemetry::Labelled<telemetry::Counter> rejected;   // reason: a RejectReason; verify_test.cpp compares them
  telemetry::Labelled<telemetry::Gauge> lag_seconds;  // work
  telemetry::Gauge depth;
  telemetry::Histogram batch_items;
};

}  // namespace postrider::inbox
