#include "postrider/api/wire/metrics.hpp"

namespace postrider::api {

namespace {
const telemetry::Names kStatusClasses = {"1xx", "2xx", "3xx", "4xx", "5xx"};
}

Metrics::Metrics(const telemetry::Metrics& all)
    : replay_requests(all.counter("webhook_replay_requests_total",
                                  "Replays requested over the API: of one delivery, or of many.")),
      registry(all) {}

http::ServerMetrics server_metrics(const telemetry::Metrics& all) {
  const auto requests = all.counter_by("webhook_api_requests_total", "Requests that got a response.",
                                       "status_class", kStatusClasses);
  http::ServerMetrics metrics;
  for (size_t i = 0; i < metrics.requests.size(); ++i) metrics.requests[i] = requests.at(kStatusClasses[i]);
  metrics.connections = all.gauge("webhook_api_connections", "Open connections to the API.");
  return metrics;
}

}  // namespace postrider::api
