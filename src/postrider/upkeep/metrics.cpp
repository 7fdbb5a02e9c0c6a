#include "postrider/upkeep/metrics.hpp"

namespace postrider::upkeep {

namespace {

using telemetry::Names;

const Names kEndpointStatuses = {"active", "paused", "disabled"};
const Names kMessageOutcomes = {"sent", "failed", "capped"};

}  // namespace

Metrics::Metrics(const telemetry::Metrics& all)
    : queue_rows(
          all.gauge("webhook_queue_rows",
                    "Deliveries in the queue of the whole cluster, estimated from table statistics. The same "
                    "on each node with the role upkeep.")),
      endpoints(
          all.gauge_by("webhook_endpoints", "Endpoints of the whole cluster.", "status", kEndpointStatuses)),
      notices(all.counter_by("webhook_notices_total", "Notices to contacts, by mail or URL.", "outcome",
                             kMessageOutcomes)),
      confirmation_mails(all.counter_by("webhook_confirmation_mails_total", "Confirmation mails to contacts.",
                                        "outcome", kMessageOutcomes)),
      retention_kept(all.counter(
          "webhook_retention_kept_rows_total",
          "Rows of events and history that are kept after the partition of their day was dropped.")),
      retention_expiring(all.gauge(
          "webhook_retention_expiring_deliveries",
          "Deliveries that have waited for a pause, brake or hold for 1.5 x retain_events or longer.")) {}

}  // namespace postrider::upkeep
