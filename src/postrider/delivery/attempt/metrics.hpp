// The metrics of sending. Labels are spelled as the enumerators that they come from; metrics_test.cpp
// compares them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "postrider/telemetry/metrics.hpp"

namespace postrider::delivery {

struct Metrics {
  // `tenants`: those with a histogram of their own.
  explicit Metrics(const telemetry::Metrics& all, const std::vector<std::string>& tenants = {});

  // outcome/status_class: delivered|retrying|dead_letter, 2xx..5xx|none
  telemetry::Labelled<telemetry::Counter> deliveries_attempted;
  telemetry::Counter deliveries_succeeded;
  // reason: an http::NetError, status_3xx, status_4xx or status_5xx
  telemetry::Labelled<telemetry::Counter> deliveries_failed;
  telemetry::Labelled<telemetry::Counter> dead_lettered;         // cause
  telemetry::Labelled<telemetry::Counter> blocked_destinations;  // reason: an http::BlockedReason
  telemetry::Histogram delivery_duration_seconds;
  telemetry::Histogram delivery_lag_seconds;
  telemetry::Histogram delivery_attempt_count;
  std::map<std::string, telemetry::Histogram, std::less<>> tenant_lag_seconds;
  telemetry::Labelled<telemetry::Gauge> queue_depth;  // state: see lanes/queue_depth.hpp
  telemetry::Gauge oldest_pending_seconds;
  telemetry::Histogram settle_batch_items, fetch_batch_items;
  telemetry::Counter database_round_trips;
  telemetry::Gauge lanes, lanes_held;
  telemetry::Gauge in_flight;
  telemetry::Counter late_settles_dropped;
  telemetry::Counter retention_canceled;  // deliveries that waited too long for a pause, brake or hold
};

}  // namespace postrider::delivery
