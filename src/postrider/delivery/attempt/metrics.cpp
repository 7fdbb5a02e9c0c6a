#include "postrider/delivery/attempt/metrics.hpp"

namespace postrider::delivery {

namespace {

using telemetry::Boundaries;
using telemetry::Names;

const Names kOutcomes = {"delivered", "retrying", "dead_letter"};
const Names kAttemptClasses = {"2xx", "3xx", "4xx", "5xx", "none"};
const Names kCauses = {"rejected", "gone", "exhausted", "expired", "blocked", "endpoint_disabled"};
const Names kFailures = {"status_3xx",        "status_4xx",         "status_5xx",         "blocked",
                         "name_not_found",    "name_lookup_failed", "connection_refused", "connection_reset",
                         "connection_closed", "unreachable",        "tls_expired",        "tls_wrong_host",
                         "tls_untrusted",     "tls_failed",         "timeout_lookup",     "timeout_connect",
                         "timeout_tls",       "timeout_send",       "timeout_first_byte", "timeout_response",
                         "not_http",          "head_too_large",     "local_failure",      "canceled"};
const Names kBlocked = {"plain_http",       "port",        "local_name",      "loopback",
                        "private_network",  "link_local",  "special_purpose", "multicast",
                        "metadata_service", "own_address", "unknown_own"};
const Names kQueueStates = {"pending", "processing", "retrying", "breaker", "paused", "held"};

const Boundaries kDurationSeconds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                     0.25,  0.5,    1,     2.5,  5,     10,   30};
const Boundaries kLagSeconds = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,   1,     2.5,   5,
                                10,    30,   60,    300,  900, 3600, 14400, 43200, 86400, 259200};
const Boundaries kAttempts = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16};
const Boundaries kBatchItems = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000};

}  // namespace

Metrics::Metrics(const telemetry::Metrics& all, const std::vector<std::string>& tenants)
    : deliveries_attempted(all.counter_by("webhook_deliveries_attempted_total",
                                          "HTTP exchanges for deliveries.", {"outcome", kOutcomes},
                                          {"status_class", kAttemptClasses})),
      deliveries_succeeded(
          all.counter("webhook_deliveries_succeeded_total", "Deliveries that were accepted.")),
      deliveries_failed(
          all.counter_by("webhook_deliveries_failed_total", "Attempts that failed.", "reason", kFailures)),
      dead_lettered(all.counter_by("webhook_dead_lettered_total", "Deliveries that failed permanently.",
                                   "cause", kCauses)),
      blocked_destinations(all.counter_by("webhook_blocked_destinations_total",
                                          "Destinations blocked by the address guard.", "reason", kBlocked)),
      delivery_duration_seconds(all.histogram("webhook_delivery_duration_seconds",
                                              "One HTTP exchange, from name lookup to response.",
                                              kDurationSeconds)),
      delivery_lag_seconds(all.histogram(
          "webhook_delivery_lag_seconds",
          "Time to delivery: from the creation of the event or replay to the response that accepted it.",
          kLagSeconds)),
      delivery_attempt_count(all.histogram("webhook_delivery_attempt_count",
                                           "Attempts of a delivery until it was delivered or failed.",
                                           kAttempts)),
      queue_depth(all.gauge_by(
          "webhook_queue_depth",
          "Deliveries that this node has in memory: pending (due, and waiting only for a turn, rate or cap), "
          "processing, retrying (due later), or waiting for a breaker, a pause or a held endpoint. Most "
          "deliveries of a paused endpoint stay in the table and are not counted.",
          "state", kQueueStates)),
      oldest_pending_seconds(
          all.gauge("webhook_oldest_pending_seconds",
                    "How long the oldest delivery in the state pending on this node has been due.")),
      settle_batch_items(all.histogram("webhook_batch_items", "Items per database batch.", kBatchItems,
                                       {{"batch", "settle"}})),
      fetch_batch_items(all.histogram("webhook_batch_items", "Items per database batch.", kBatchItems,
                                      {{"batch", "fetch"}})),
      database_round_trips(
          all.counter("webhook_database_round_trips_total", "Round trips of delivery to the database.")),
      lanes(all.gauge("webhook_lanes", "Endpoints with work in memory.")),
      lanes_held(
          all.gauge("webhook_lanes_held", "Endpoints whose deliveries wait because no secret can be read.")),
      in_flight(all.gauge("webhook_in_flight", "HTTP exchanges in progress.")),
      late_settles_dropped(all.counter("webhook_late_settles_dropped_total",
                                       "Results not written because the bucket had a new owner.")),
      retention_canceled(all.counter("webhook_retention_canceled_deliveries_total",
                                     "Deliveries canceled because they had waited for 2 x retain_events.")) {
  for (const std::string& tenant : tenants)
    tenant_lag_seconds.emplace(tenant, all.histogram("webhook_tenant_delivery_lag_seconds",
                                                     "Time to delivery of the tenants in metrics_tenants.",
                                                     kLagSeconds, {{"tenant", tenant}}));
}

}  // namespace postrider::delivery
