#include "postrider/outbox/metrics.hpp"

namespace postrider::outbox {

namespace {
const telemetry::Boundaries kRelaySeconds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                             0.25,  0.5,    1,     5,    30,    300,  3600};
}

OutboxMetrics::OutboxMetrics(const telemetry::Metrics& all, const std::string& name)
    : published(all.counter("webhook_relay_rows_total", "Rows of an outbox that were published or rejected.",
                            {{"outbox", name}, {"result", "published"}})),
      rejected(all.counter("webhook_relay_rows_total", "Rows of an outbox that were published or rejected.",
                           {{"outbox", name}, {"result", "rejected"}})),
      stuck(all.gauge("webhook_outbox_stuck", "Rows of an outbox that were set aside.", {{"outbox", name}})),
      oldest_seconds(all.gauge("webhook_outbox_oldest_seconds",
                               "Age of the oldest row that waits to be published.", {{"outbox", name}})),
      active(all.gauge("webhook_relay_active", "1 while this node relays the outbox.", {{"outbox", name}})),
      lag_seconds(all.histogram("webhook_relay_lag_seconds", "Row written to event published.", kRelaySeconds,
                                {{"outbox", name}})) {}

CaptureMetrics::CaptureMetrics(const telemetry::Metrics& all, const std::string& name)
    : active(all.gauge("webhook_capture_active", "1 while emit() writes messages and this node reads them.",
                       {{"outbox", name}})),
      behind_bytes(all.gauge("webhook_capture_behind_bytes",
                             "Write-ahead log that is not read from the slot.", {{"outbox", name}})),
      retained_bytes(all.gauge("webhook_capture_retained_bytes",
                               "Write-ahead log that the server keeps for the slot.", {{"outbox", name}})),
      age_seconds(all.gauge("webhook_capture_age_seconds", "Time since the slot was last read to its end.",
                            {{"outbox", name}})),
      spilled(all.counter("webhook_capture_spilled_total",
                          "Messages that became rows: the slot was over its limit.", {{"outbox", name}})),
      ignored(all.counter("webhook_capture_ignored_total", "Messages in the log that emit() did not write.",
                          {{"outbox", name}})),
      fallbacks(all.counter("webhook_capture_fallbacks_total", "Times that the slot was over its limit.",
                            {{"outbox", name}})),
      lost_slots(all.counter("webhook_capture_lost_slots_total", "Slots that were found missing or invalid.",
                             {{"outbox", name}})) {}

}  // namespace postrider::outbox
