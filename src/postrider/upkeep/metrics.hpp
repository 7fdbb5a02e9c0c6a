// The metrics of upkeep and of messages to tenants' contacts.
#pragma once

#include "postrider/telemetry/metrics.hpp"

namespace postrider::upkeep {

struct Metrics {
  explicit Metrics(const telemetry::Metrics& all);

  telemetry::Gauge queue_rows;
  telemetry::Labelled<telemetry::Gauge> endpoints;             // status
  telemetry::Labelled<telemetry::Counter> notices;             // outcome
  telemetry::Labelled<telemetry::Counter> confirmation_mails;  // outcome
  telemetry::Counter retention_kept;                           // rows that are needed longer than their day
  telemetry::Gauge retention_expiring;  // deliveries that will be canceled unless their wait ends
};

}  // namespace postrider::upkeep
