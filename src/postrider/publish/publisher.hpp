// Accepts events: one transaction writes the event, one queue row per matching endpoint and a line in the
// publish log, for as many requests as arrived together. Whoever publishes is answered after the commit.
//
// One publisher per loop, with a link of its own; used on that loop only.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "postrider/base/unique_function.hpp"
#include "postrider/model/hand_over.hpp"
#include "postrider/model/id_source.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/publish/batcher.hpp"
#include "postrider/publish/new_event.hpp"
#include "postrider/publish/rates.hpp"
#include "postrider/telemetry/metrics.hpp"

namespace postrider::publish {

struct Published {
  std::string answer;      // JSON, as publish_answer() makes it
  bool is_repeat = false;  // the same request was accepted before; this is its first answer
};

struct Refused {
  enum class Reason {
    unknown_tenant,
    conflict,      // the id or key belongs to a request with other content
    too_large,     // more data than the tenant may send
    unacceptable,  // it breaks a rule (see faults_of), or the database refuses it
    too_fast,      // the tenant's publish rate is used up
    overloaded,    // nothing was tried
    unavailable,   // no database; the outcome may be unknown: repeat with the same id or key
  };
  Reason reason;
  std::string detail;
};

using PublishAnswer = std::variant<Published, Refused>;

struct PublisherOptions {
  model::NodeId node_id{};
  bool create_tenants = false;
  int data_bytes_max = 256 << 10;  // when the tenant sets no limit of its own
  int wide_endpoints = 2'000;      // a tenant with more endpoints is fanned out in chunks (WideFanout)
  PublishRates* rates = nullptr;   // shared by the publishers of a node; none: no rate is enforced
  BatchLimits limits{};
  std::chrono::milliseconds give_up_after{10'000};  // without a database, since the event came
};

class Publisher {
 public:
  Publisher(runtime::Loop& loop, pg::Link& link, model::IdSource& ids, model::HandOver& hand_over,
            const telemetry::Metrics& metrics, PublisherOptions options);
  ~Publisher();  // stop() was awaited, or nothing was ever published
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  // Called on the loop after each commit, with the buckets that got deliveries: whoever wakes other nodes
  // coalesces there. The other one after a commit that left a fan-out task.
  void on_committed(base::UniqueFunction<void(const std::vector<int>& buckets)> callback);
  void on_wide(base::UniqueFunction<void()> callback);

  // Neither throws. Refused as unavailable while the id source is not ready.
  runtime::Task<PublishAnswer> publish(NewEvent event);
  // The answers in the order of the events, each as if it had come alone; but either all are taken on or,
  // when there is too much waiting, all are refused.
  runtime::Task<std::vector<PublishAnswer>> publish_all(std::vector<NewEvent> events);

  // Until everything taken on is answered. Publish nothing afterwards.
  runtime::Task<void> stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace postrider::publish
