// The metrics of an outbox and of its capture.
#pragma once

#include <string>

#include "postrider/telemetry/metrics.hpp"

namespace postrider::outbox {

struct OutboxMetrics {
  OutboxMetrics(const telemetry::Metrics& all, const std::string& name);

  telemetry::Counter published, rejected;
  telemetry::Gauge stuck;            // rows set aside
  telemetry::Gauge oldest_seconds;   // age of the oldest row that is not set aside
  telemetry::Gauge active;           // 1: this node relays it
  telemetry::Histogram lag_seconds;  // written → published
};

// Of an outbox's replication slot.
struct CaptureMetrics {
  CaptureMetrics(const telemetry::Metrics& all, const std::string& name);

  telemetry::Gauge active;          // 1: emit() writes messages and this node reads them
  telemetry::Gauge behind_bytes;    // of log that is not read and processed
  telemetry::Gauge retained_bytes;  // of log that the server keeps for the slot
  telemetry::Gauge age_seconds;     // since everything was read and processed
  telemetry::Counter spilled;       // messages that became rows, because the slot was over its limit
  telemetry::Counter ignored;       // messages that emit() did not write
  telemetry::Counter fallbacks;     // times the slot was over its limit
  telemetry::Counter lost_slots;    // slots that were found missing or invalid
};

}  // namespace postrider::outbox
