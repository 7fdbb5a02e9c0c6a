// Publishes messages of forwarding sources as events of a tenant, so that the delivery engine carries them
// on.
//
// An event has its message's id as its own, and a tenant's event ids are unique: a crash between publishing
// and noting it makes the next forwarder publish a repeat, which changes nothing. Every node with the role
// inbox forwards; leases keep them apart. One loop.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "postrider/inbox/sources.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/publish/publisher.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::inbox {

class Forwarder {
 public:
  static constexpr std::chrono::milliseconds kPoll{1'000};
  static constexpr int kBatch = 200;
  // Longer than a publisher tries; what a dead node held waits so long.
  static constexpr double kLeaseSeconds = 15;

  // `worker` names this node among those that forward.
  Forwarder(runtime::Loop& loop, pg::Link& link, publish::Publisher& publisher, std::string worker);

  void start();
  void notify();  // something was stored
  runtime::Task<void> stop();

  // All that is due now; returns how many messages were published. Throws pg::Error.
  runtime::Task<size_t> run_once();

 private:
  struct Job {
    base::Uuid id;
    std::optional<std::string> partition_key;
    std::string data;  // JSON
    std::string type;
    std::string error;  // not empty: it cannot be an event
  };
  runtime::Task<void> run();
  runtime::Task<size_t> forward(const SourceId& source, const Forward& how);
  runtime::Task<size_t> publish(std::vector<Job>& jobs, const Forward& how);
  runtime::Task<void> note_failure(const Job& job, const publish::Refused& refused);

  pg::Link& link_;
  publish::Publisher& publisher_;
  std::string worker_;
  runtime::Wakeup wakeup_;
  bool is_stopping_ = false;
  runtime::TaskGroup tasks_;
};

}  // namespace postrider::inbox
