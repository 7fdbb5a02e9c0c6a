// Every metric of the process, as named members. Each series exists at 0 from the start for each known label
// value. prometheus-cpp keeps the numbers and writes the text; it stays behind this header. Threads: any.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
}  // namespace prometheus

namespace postrider::telemetry {

class Counter {
 public:
  explicit Counter(prometheus::Counter& series) : series_(&series) {}
  void add(double count = 1) const;
  double value() const;

 private:
  prometheus::Counter* series_;
};

class Gauge {
 public:
  explicit Gauge(prometheus::Gauge& series) : series_(&series) {}
  void set(double value) const;
  void add(double change) const;
  double value() const;

 private:
  prometheus::Gauge* series_;
};

class Histogram {
 public:
  explicit Histogram(prometheus::Histogram& series) : series_(&series) {}
  void observe(double value) const;

 private:
  prometheus::Histogram* series_;
};

// The series of one family, by label value ("exhausted") or by two joined with a slash ("delivered/2xx").
// Asking for a value that is not known beforehand is a bug. A look-up compares a few short strings; hot paths
// keep the result.
template <class Series>
class Labelled {
 public:
  const Series& at(std::string_view labels) const;
  const Series* find(std::string_view labels) const;  // null when it is not known
  void insert(std::string labels, Series series) { series_.push_back({std::move(labels), series}); }

 private:
  struct Entry {
    std::string labels;
    Series series;
  };
  std::vector<Entry> series_;
};

// The series of one outbox.
struct OutboxSeries {
  Counter published, refused;
  Gauge stuck;            // rows set aside
  Gauge oldest_seconds;   // age of the oldest row that is not set aside
  Gauge active;           // 1: this node relays it
  Histogram lag_seconds;  // written → published
};

// The series of one outbox's replication slot (change data capture).
struct CaptureSeries {
  Gauge active;          // 1: emit() writes messages and this node reads them
  Gauge behind_bytes;    // of log that is not read and done
  Gauge retained_bytes;  // of log that the server keeps for the slot
  Gauge age_seconds;     // since everything was read and done
  Counter spilled;       // messages that became rows, because the slot was over its limit
  Counter ignored;       // messages that are not emit()'s
  Counter fallbacks;     // times the slot was over its limit
  Counter lost_slots;    // slots that were found missing or invalid
};

class Metrics {
  struct Registry;
  std::unique_ptr<Registry> registry_;

 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  std::string text() const;  // Prometheus text format 0.0.4

  // The path of an event.
  Counter events_created;
  Labelled<Counter> unfit_events;  // action: warned|refused; by the catalogue of event types
  Labelled<Counter>
      deliveries_attempted;  // outcome/status_class: delivered|retrying|dead_letter, 2xx..5xx|none
  Counter deliveries_succeeded;
  Labelled<Counter> deliveries_failed;  // reason: an http::NetError, status_3xx, status_4xx or status_5xx
  Labelled<Counter> dead_lettered;      // cause: rejected|gone|exhausted|expired|blocked|endpoint_disabled
  Counter replay_requests;
  Histogram delivery_duration_seconds;
  Histogram delivery_lag_seconds;
  Histogram delivery_attempt_count;
  Labelled<Gauge> queue_depth;  // state: pending|processing|retrying
  Gauge oldest_pending_seconds;
  Labelled<Gauge> endpoints;               // status: active|paused|disabled
  Labelled<Counter> blocked_destinations;  // reason: an http::BlockedReason

  // The inbox.
  Labelled<Counter> inbox_received;   // outcome: stored|duplicate|duplicate_content
  Labelled<Counter> inbox_rejected;   // reason: an inbox::RejectReason
  Labelled<Gauge> inbox_lag_seconds;  // work: consume|forward
  Gauge inbox_depth;

  // Messages to tenants' contacts.
  Labelled<Counter> notices;             // outcome: sent|failed|capped
  Labelled<Counter> confirmation_mails;  // outcome: sent|failed|capped

  // The machinery.
  Labelled<Histogram> batch_size;  // batch: publish|settle|fetch|inbox
  Counter database_round_trips;
  Gauge leases_held;
  Gauge lanes;
  Gauge lanes_held;
  Gauge in_flight;
  Counter late_settles_dropped;

  // Retention.
  Counter retention_kept;      // rows that outlived their day
  Gauge retention_expiring;    // deliveries that will be canceled unless what they wait for ends
  Counter retention_canceled;  // deliveries that were

  // Made when it is first asked for; `local` is there from the start. Any thread.
  OutboxSeries outbox(const std::string& name) const;
  CaptureSeries capture(const std::string& name) const;

  // The API's listener.
  Labelled<Counter> api_requests;  // status_class: 1xx..5xx
  Gauge api_connections;
};

}  // namespace postrider::telemetry
