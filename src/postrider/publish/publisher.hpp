// Accepts events: one transaction writes the event, one queue row per matching endpoint and a line in the
// publish log, for all requests that arrived together. The result comes after the commit.
//
// One publisher per loop, with its own link; used on that loop only.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "postrider/base/rate_limiter.hpp"
#include "postrider/base/unique_function.hpp"
#include "postrider/model/handoff.hpp"
#include "postrider/model/id_source.hpp"
#include "postrider/pg/batcher.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/publish/metrics.hpp"
#include "postrider/publish/new_event.hpp"

namespace postrider::publish {

struct Published {
  std::string response;    // JSON, see publish_response()
  bool is_repeat = false;  // the same request was accepted before; this is its first response
};

struct Rejected {
  enum class Reason {
    unknown_tenant,
    conflict,     // the ID or key belongs to a request with other content
    too_large,    // more data than the tenant may send
    invalid,      // it breaks a rule (see errors_of), or the database rejects it
    too_fast,     // the tenant's publish rate is exceeded
    overloaded,   // nothing was tried
    unavailable,  // no database; the result may be unknown: repeat with the same ID or key
  };
  Reason reason;
  std::string detail;
};

using PublishResult = std::variant<Published, Rejected>;

struct PublisherOptions {
  model::NodeId node_id{};
  bool create_tenants = false;
  int data_bytes_max = 256 << 10;      // if the tenant has no limit of its own
  int wide_endpoints = 2'000;          // a tenant with more endpoints is fanned out in chunks (WideFanout)
  base::RateLimiter* rates = nullptr;  // shared by the publishers of a node; none: no limits
  pg::BatchLimits limits{};
  std::chrono::milliseconds give_up_after{10'000};  // without a database, since the event came
};

class Publisher {
 public:
  Publisher(runtime::Loop& loop, pg::Link& link, model::IdSource& ids, model::Handoff& handoff,
            const telemetry::Metrics& metrics, PublisherOptions options);
  ~Publisher();  // stop() was awaited, or nothing was ever published
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  // Called on the loop: after each commit, with the buckets that got deliveries, to wake other nodes; and
  // after a commit that left a task for wide fan-out.
  void on_committed(base::UniqueFunction<void(const std::vector<int>& buckets)> callback);
  void on_wide(base::UniqueFunction<void()> callback);

  // Neither throws. Rejected as unavailable while the ID source is not ready.
  runtime::Task<PublishResult> publish(NewEvent event);
  // The results are in the order of the events, each as if it had come alone; but if too many events wait,
  // all are rejected.
  runtime::Task<std::vector<PublishResult>> publish_all(std::vector<NewEvent> events);

  // Returns when every accepted event has its result. Publish nothing afterwards.
  runtime::Task<void> stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace postrider::publish
