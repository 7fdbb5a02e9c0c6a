#include "postrider/telemetry/metrics.hpp"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <sstream>

#include "postrider/base/check.hpp"

namespace postrider::telemetry {

void Counter::add(double count) const {
  series_->Increment(count);
}
double Counter::value() const {
  return series_->Value();
}
void Gauge::set(double value) const {
  series_->Set(value);
}
void Gauge::add(double change) const {
  series_->Increment(change);
}
double Gauge::value() const {
  return series_->Value();
}
void Histogram::observe(double value) const {
  series_->Observe(value);
}

template <class Series>
const Series* Labelled<Series>::find(std::string_view labels) const {
  const auto found = std::find_if(series_.begin(), series_.end(),
                                  [&](const Entry& entry) { return entry.labels == labels; });
  return found == series_.end() ? nullptr : &found->series;
}

template <class Series>
const Series& Labelled<Series>::at(std::string_view labels) const {
  const Series* series = find(labels);
  CHECK(series);
  return *series;
}

template class Labelled<Counter>;
template class Labelled<Gauge>;
template class Labelled<Histogram>;

namespace {

using Names = std::vector<std::string>;
using Boundaries = prometheus::Histogram::BucketBoundaries;

// The labels are spelled as the enumerators that they come from; a test beside each enumeration compares
// them.
const Names kUnfit = {"warned", "refused"};
const Names kOutcomes = {"delivered", "retrying", "dead_letter"};
const Names kStatusClasses = {"1xx", "2xx", "3xx", "4xx", "5xx"};
const Names kAttemptClasses = {"2xx", "3xx", "4xx", "5xx", "none"};
const Names kCauses = {"rejected", "gone", "exhausted", "expired", "blocked", "endpoint_disabled"};
const Names kFailures = {"status_3xx",        "status_4xx",         "status_5xx",         "blocked",
                         "name_not_found",    "name_lookup_failed", "connection_refused", "connection_reset",
                         "connection_closed", "unreachable",        "tls_expired",        "tls_wrong_host",
                         "tls_untrusted",     "tls_failed",         "timeout_lookup",     "timeout_connect",
                         "timeout_tls",       "timeout_send",       "timeout_first_byte", "timeout_answer",
                         "not_http",          "head_too_large",     "local_failure",      "canceled"};
const Names kBlocked = {"plain_http",       "port",        "local_name",      "loopback",
                        "private_network",  "link_local",  "special_purpose", "multicast",
                        "metadata_service", "own_address", "unknown_own"};
const Names kQueueStates = {"pending", "processing", "retrying"};
const Names kEndpointStatuses = {"active", "paused", "disabled"};
const Names kBatches = {"publish", "settle", "fetch", "inbox"};
const Names kInboxOutcomes = {"stored", "duplicate", "duplicate_content"};
const Names kMessageOutcomes = {"sent", "failed", "capped"};
const Names kInboxWork = {"consume", "forward"};
const Names kRejectReasons = {"missing_header",     "malformed_header", "timestamp_old",
                              "timestamp_future",   "no_secret",        "malformed_body",
                              "signature_mismatch", "body_too_large",   "unknown_source"};

const Boundaries kDurationSeconds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                     0.25,  0.5,    1,     2.5,  5,     10,   30};
const Boundaries kLagSeconds = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,   1,     2.5,   5,
                                10,    30,   60,    300,  900, 3600, 14400, 43200, 86400, 259200};
const Boundaries kAttempts = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16};
const Boundaries kRelaySeconds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                  0.25,  0.5,    1,     5,    30,    300,  3600};
const Boundaries kBatchItems = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000};

}  // namespace

struct Metrics::Registry {
  prometheus::Registry registry;

  prometheus::Family<prometheus::Counter>& counters(const std::string& name, const std::string& help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  }
  prometheus::Family<prometheus::Gauge>& gauges(const std::string& name, const std::string& help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
  }
  prometheus::Family<prometheus::Histogram>& histograms(const std::string& name, const std::string& help) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
  }

  Counter counter(const std::string& name, const std::string& help) {
    return Counter(counters(name, help).Add({}));
  }
  Gauge gauge(const std::string& name, const std::string& help) { return Gauge(gauges(name, help).Add({})); }
  Histogram histogram(const std::string& name, const std::string& help, const Boundaries& boundaries) {
    return Histogram(histograms(name, help).Add({}, boundaries));
  }
  Labelled<Counter> counter_by(const std::string& name, const std::string& help, const std::string& label,
                               const Names& values) {
    auto& family = counters(name, help);
    Labelled<Counter> series;
    for (const auto& value : values) series.insert(value, Counter(family.Add({{label, value}})));
    return series;
  }
  Labelled<Gauge> gauge_by(const std::string& name, const std::string& help, const std::string& label,
                           const Names& values) {
    auto& family = gauges(name, help);
    Labelled<Gauge> series;
    for (const auto& value : values) series.insert(value, Gauge(family.Add({{label, value}})));
    return series;
  }
  Labelled<Counter> attempts() {
    auto& family = counters("webhook_deliveries_attempted_total", "HTTP exchanges for deliveries.");
    Labelled<Counter> series;
    for (const auto& outcome : kOutcomes)
      for (const auto& status_class : kAttemptClasses)
        series.insert(outcome + "/" + status_class,
                      Counter(family.Add({{"outcome", outcome}, {"status_class", status_class}})));
    return series;
  }
  OutboxSeries outbox(const std::string& name) {
    auto& rows = counters("webhook_relay_rows_total", "Rows of an outbox that were published or refused.");
    const auto gauge_of = [&](const char* family, const char* help) {
      return Gauge(gauges(family, help).Add({{"outbox", name}}));
    };
    return {Counter(rows.Add({{"outbox", name}, {"result", "published"}})),
            Counter(rows.Add({{"outbox", name}, {"result", "refused"}})),
            gauge_of("webhook_outbox_stuck", "Rows of an outbox that were set aside."),
            gauge_of("webhook_outbox_oldest_seconds", "Age of the oldest row that waits to be published."),
            gauge_of("webhook_relay_active", "1 while this node relays the outbox."),
            Histogram(histograms("webhook_relay_lag_seconds", "Row written to event published.")
                          .Add({{"outbox", name}}, kRelaySeconds))};
  }
  CaptureSeries capture(const std::string& name) {
    const auto gauge_of = [&](const char* family, const char* help) {
      return Gauge(gauges(family, help).Add({{"outbox", name}}));
    };
    const auto counter_of = [&](const char* family, const char* help) {
      return Counter(counters(family, help).Add({{"outbox", name}}));
    };
    return {
        gauge_of("webhook_capture_active", "1 while emit() writes messages and this node reads them."),
        gauge_of("webhook_capture_behind_bytes", "Write-ahead log that is not read from the slot."),
        gauge_of("webhook_capture_retained_bytes", "Write-ahead log that the server keeps for the slot."),
        gauge_of("webhook_capture_age_seconds", "Since the slot was last read to its end."),
        counter_of("webhook_capture_spilled_total",
                   "Messages that became rows: the slot was over its limit."),
        counter_of("webhook_capture_ignored_total", "Messages in the log that emit() did not write."),
        counter_of("webhook_capture_fallbacks_total", "Times that the slot was over its limit."),
        counter_of("webhook_capture_lost_slots_total", "Slots that were found missing or invalid."),
    };
  }
  Labelled<Histogram> batches() {
    auto& family = histograms("webhook_batch_items", "Items per database batch.");
    Labelled<Histogram> series;
    for (const auto& batch : kBatches)
      series.insert(batch, Histogram(family.Add({{"batch", batch}}, kBatchItems)));
    return series;
  }
};

Metrics::Metrics()
    : registry_(std::make_unique<Registry>()),
      events_created(registry_->counter("webhook_events_created_total", "Events accepted and committed.")),
      unfit_events(registry_->counter_by("webhook_unfit_events_total",
                                         "Events that did not fit the catalogue of event types.", "action",
                                         kUnfit)),
      deliveries_attempted(registry_->attempts()),
      deliveries_succeeded(
          registry_->counter("webhook_deliveries_succeeded_total", "Deliveries that were accepted.")),
      deliveries_failed(registry_->counter_by("webhook_deliveries_failed_total",
                                              "Attempts that did not deliver.", "reason", kFailures)),
      dead_lettered(
          registry_->counter_by("webhook_dead_lettered_total", "Deliveries given up.", "cause", kCauses)),
      replay_requests(registry_->counter("webhook_replay_requests_total",
                                         "Replays asked for over the API: of one delivery, or of many.")),
      delivery_duration_seconds(registry_->histogram("webhook_delivery_duration_seconds",
                                                     "One HTTP exchange, from name lookup to answer.",
                                                     kDurationSeconds)),
      delivery_lag_seconds(
          registry_->histogram("webhook_delivery_lag_seconds", "Event created to delivered.", kLagSeconds)),
      delivery_attempt_count(registry_->histogram(
          "webhook_delivery_attempt_count",
          "Attempts that a delivery took until it was delivered or given up.", kAttempts)),
      queue_depth(registry_->gauge_by("webhook_queue_depth", "Live deliveries.", "state", kQueueStates)),
      oldest_pending_seconds(registry_->gauge("webhook_oldest_pending_seconds",
                                              "Age of the oldest delivery that is due and not sent.")),
      endpoints(
          registry_->gauge_by("webhook_endpoints", "Registered endpoints.", "status", kEndpointStatuses)),
      blocked_destinations(registry_->counter_by("webhook_blocked_destinations_total",
                                                 "Destinations refused by the address guard.", "reason",
                                                 kBlocked)),
      inbox_received(registry_->counter_by(
          "webhook_inbox_received_total", "Inbound messages that were verified.", "outcome", kInboxOutcomes)),
      inbox_rejected(registry_->counter_by(
          "webhook_inbox_rejected_total", "Inbound requests refused at the door.", "reason", kRejectReasons)),
      inbox_lag_seconds(registry_->gauge_by("webhook_inbox_lag_seconds",
                                            "How long the oldest message that is due has waited.", "work",
                                            kInboxWork)),
      inbox_depth(registry_->gauge("webhook_inbox_depth", "Messages that are not done, estimated.")),
      notices(registry_->counter_by("webhook_notices_total", "Notices to contacts, by mail or URL.",
                                    "outcome", kMessageOutcomes)),
      confirmation_mails(registry_->counter_by("webhook_confirmation_mails_total",
                                               "Mails that ask contacts to confirm.", "outcome",
                                               kMessageOutcomes)),
      batch_size(registry_->batches()),
      database_round_trips(
          registry_->counter("webhook_database_round_trips_total", "Pipelines sent and answered.")),
      leases_held(registry_->gauge("webhook_leases_held", "Buckets that this node serves.")),
      lanes(registry_->gauge("webhook_lanes", "Endpoints with work in memory.")),
      lanes_held(registry_->gauge("webhook_lanes_held",
                                  "Endpoints whose deliveries wait because no secret can be read.")),
      in_flight(registry_->gauge("webhook_in_flight", "HTTP exchanges in progress.")),
      late_settles_dropped(registry_->counter("webhook_late_settles_dropped_total",
                                              "Results refused because the bucket had a new owner.")),
      retention_kept(registry_->counter("webhook_retention_kept_rows_total",
                                        "Rows of events and history that outlived their day.")),
      retention_expiring(registry_->gauge(
          "webhook_retention_expiring_deliveries",
          "Deliveries that have waited for a pause, brake or hold for 1.5 x retain_events or longer.")),
      retention_canceled(
          registry_->counter("webhook_retention_canceled_deliveries_total",
                             "Deliveries canceled because they had waited for 2 x retain_events.")),
      api_requests(registry_->counter_by("webhook_api_requests_total", "Requests answered.", "status_class",
                                         kStatusClasses)),
      api_connections(registry_->gauge("webhook_api_connections", "Open connections to the API.")) {
  outbox("local");
  capture("local");
}

Metrics::~Metrics() = default;

OutboxSeries Metrics::outbox(const std::string& name) const {
  return registry_->outbox(name);
}

CaptureSeries Metrics::capture(const std::string& name) const {
  return registry_->capture(name);
}

std::string Metrics::text() const {
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, registry_->registry.Collect());
  return std::move(out).str();
}

}  // namespace postrider::telemetry
