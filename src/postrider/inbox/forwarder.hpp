// Publishes messages of forwarding sources as events of a tenant, so that the delivery engine carries them
// on.
//
// An event has its message's id as its own, and a tenant's event ids are unique: a crash between publishing
// and noting it makes the next forwarder publish a repeat, which changes nothing. Every node with the role
// inbox forwards; leases keep them apart. One loop.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "postrider/base/time.hpp"
#include "postrider/inbox/forward.sql.hpp"
#include "postrider/inbox/sources.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/publish/publisher.hpp"
#include "postrider/runtime/service.hpp"

namespace postrider::inbox {

class Forwarder : public runtime::Service {
 public:
  static constexpr std::chrono::milliseconds kPoll{1'000};
  static constexpr int kBatch = 200;
  // Bodies in memory at once, but for one that is larger; a fraction of what a publisher lets wait.
  static constexpr int64_t kBatchBytes = 8 << 20;
  static constexpr size_t kDataBytesMax = 32 << 20;
  // Messages that the publisher could not take now (too many, too fast, no database) return to the queue for
  // this time without using up an attempt, and their source is not read meanwhile.
  static constexpr std::chrono::milliseconds kHold{1'000};
  // Longer than a publisher tries; what a dead node held waits so long.
  static constexpr double kLeaseSeconds = 15;

  // `worker` names this node among those that forward.
  Forwarder(runtime::Loop& loop, pg::Link& link, publish::Publisher& publisher, std::string worker);

  // A batch of each source that is not held back at `now`; returns how many messages left the queue,
  // published or marked as failed. Throws pg::Error.
  runtime::Task<size_t> forward_due(base::SteadyTime now);

 private:
  struct Job {
    base::Uuid id;
    std::optional<std::string> partition_key;
    std::string data;  // JSON
    std::string type;
    std::string error;  // not empty: it cannot be an event
  };
  struct Failure {
    base::Uuid id;
    publish::Rejected rejected;
  };
  struct Forwarded {
    std::vector<base::Uuid> done;
    std::vector<base::Uuid> held;  // not taken now, for a reason that is not theirs
    std::string held_error;        // the last of them
    std::vector<Failure> rejected;
  };
  runtime::Task<runtime::SteadyTime> pass(runtime::SteadyTime now) override;
  bool is_held(const SourceId& source, base::SteadyTime now);
  runtime::Task<size_t> forward(const SourceId& source, const Forward& how);
  static Job read_job(const sql::take_forwards::Row& row, const Forward& how);
  runtime::Task<Forwarded> publish(const std::vector<Job>& jobs, const Forward& how);
  runtime::Task<size_t> settle(const SourceId& source, const Forwarded& outcome);
  runtime::Task<void> give_back(const SourceId& source, const Forwarded& outcome);
  runtime::Task<void> note_failure(const Failure& failure);

  pg::Link& link_;
  publish::Publisher& publisher_;
  std::string worker_;
  std::map<SourceId, base::SteadyTime> held_until_;
};

}  // namespace postrider::inbox
