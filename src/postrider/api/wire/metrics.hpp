// The metrics of the API and of its server.
#pragma once

#include "postrider/http/server/server.hpp"
#include "postrider/registry/metrics.hpp"

namespace postrider::api {

struct Metrics {
  explicit Metrics(const telemetry::Metrics& all);

  telemetry::Counter replay_requests;
  registry::Metrics registry;
};

http::ServerMetrics server_metrics(const telemetry::Metrics& all);

}  // namespace postrider::api
