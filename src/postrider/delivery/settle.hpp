// Step "settle": attempts and what became of their deliveries are written down, in batches.
//
// The first settlement starts a flush at once; what arrives while it runs forms the next batch. A batch is
// one transaction. One bad item is found by bisection and harms only itself. While the database is away
// settlements wait; whether the lease still holds is judged by the database itself when they are written.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "postrider/base/unique_function.hpp"
#include "postrider/delivery/lane.hpp"
#include "postrider/delivery/verdict.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"
#include "postrider/telemetry/metrics.hpp"

namespace postrider::delivery {

// What support wants to know about one attempt.
struct AttemptFacts {
  bool is_exchange = true;  // false: it ended without one, for example expired while held
  std::optional<int> status_code;
  std::optional<std::string> error;         // a word
  std::optional<std::string> error_detail;  // a sentence
  base::Timestamp started_at{};
  std::optional<int> dns_us, connect_us, tls_us, first_byte_us;
  int total_us = 0;
  std::optional<std::string> preview;
  std::optional<std::string> address;
};

struct Settlement {
  std::shared_ptr<Lane> lane;
  Row row;  // as it was before the attempt
  Verdict verdict;
  AttemptFacts facts;
};

enum class Written {
  now,     // durable
  before,  // not found any more at a second try: the first one, whose answer was lost, had written it
  late,    // the row had changed or the bucket belongs to somebody else: nothing was written
  refused  // Postgres does not take it, whatever is left out: the row stays as it is, for a person to look at
};

struct SettlerOptions {
  model::NodeId node_id;
  size_t batch_items_max = 500;
};

class Settler {
 public:
  // Called on the loop for each one, in no particular order, once that much is certain.
  using Settled = base::UniqueFunction<void(Settlement&, Written)>;
  Settler(runtime::Loop& loop, pg::Link& link, telemetry::Metrics& metrics, SettlerOptions options,
          Settled settled);

  void add(Settlement settlement);

  // The endpoint itself is to be disabled or paused. Written before the next batch.
  struct StatusChange {
    model::EndpointId endpoint;
    Verdict::Endpoint what;
    std::string reason;
  };
  void change_status(StatusChange change);

  struct HealthChange {
    model::EndpointId endpoint;
    bool is_failing;
    std::string breaker;  // "open" or "closed"
    base::Timestamp at;
    int failures = 0;                             // since the last success, up to kFailuresCounted
    std::optional<std::string> probe_error = {};  // a probe that failed leaves no other trace
  };
  // So many failures are enough to call an endpoint unhealthy; more are not counted.
  static constexpr int kFailuresCounted = 10;
  void note_health(HealthChange change);

  // Why an endpoint's deliveries are held, because nothing can be signed; empty: they are no longer.
  void note_hold(model::EndpointId endpoint, std::string reason);

  size_t waiting() const { return waiting_.size() + writing_; }
  // Returns when nothing waits, at the deadline, or when the database has been away for seconds.
  runtime::Task<void> drain(base::SteadyTime deadline);
  void abandon() { is_stopping_ = true; }  // what could not be written is given up; then stop the link
  runtime::Task<void> stop();

 private:
  using Batch = std::vector<Settlement>;
  enum class Repeat { no, yes };  // yes: an earlier try may have been committed

  void wake();
  runtime::Task<void> run();
  runtime::Task<void> write(Batch batch, Repeat repeat);
  runtime::Task<void> write_once(Batch& batch, Repeat repeat);
  runtime::Task<void> write_changes();
  // False: not now. What may be written in a moment waits again.
  runtime::Task<bool> write_notes();
  runtime::Task<bool> write_statuses();
  runtime::Task<bool> write_status(const StatusChange& change);
  bool has_changes() const { return !status_changes_.empty() || !health_changes_.empty() || !holds_.empty(); }
  void note_health_unless_newer(const HealthChange& change);
  // False: not now, but maybe in a moment.
  runtime::Task<bool> make_partitions(const Batch& batch);
  void give_up_details(Batch& batch);
  void tell(Batch& batch, const std::vector<model::DeliveryId>& settled, Repeat repeat);

  runtime::Loop& loop_;
  pg::Link& link_;
  telemetry::Metrics& metrics_;
  SettlerOptions options_;
  Settled settled_;
  std::deque<Settlement> waiting_;
  std::vector<StatusChange> status_changes_;
  std::vector<HealthChange> health_changes_;
  std::map<model::EndpointId, std::string> holds_;
  size_t writing_ = 0;
  bool is_running_ = false;
  bool is_stopping_ = false;
  runtime::Wakeup pause_, draining_;
  runtime::TaskGroup tasks_;
};

}  // namespace postrider::delivery
