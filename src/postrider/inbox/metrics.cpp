#include "postrider/inbox/metrics.hpp"

namespace postrider::inbox {

namespace {

using telemetry::Names;

const Names kOutcomes = {"stored", "duplicate", "duplicate_content"};
const Names kWork = {"consume", "forward"};
const Names kRejectReasons = {"missing_header",     "malformed_header", "timestamp_old",
                              "timestamp_future",   "no_secret",        "malformed_body",
                              "signature_mismatch", "body_too_large",   "unknown_source"};
const telemetry::Boundaries kBatchItems = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000};

}  // namespace

Metrics::Metrics(const telemetry::Metrics& all)
    : received(all.counter_by("webhook_inbox_received_total", "Inbound messages that were verified.",
                              "outcome", kOutcomes)),
      rejected(all.counter_by("webhook_inbox_rejected_total", "Inbound requests that were rejected.",
                              "reason", kRejectReasons)),
      lag_seconds(all.gauge_by("webhook_inbox_lag_seconds",
                               "How long the oldest message that is due has waited.", "work", kWork)),
      depth(all.gauge("webhook_inbox_depth", "Messages that are not done, estimated.")),
      batch_items(all.histogram("webhook_batch_items", "Items per database batch.", kBatchItems,
                                {{"batch", "inbox"}})) {}

}  // namespace postrider::inbox
