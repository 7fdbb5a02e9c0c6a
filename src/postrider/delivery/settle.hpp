// Step "settle": records attempts and the new state of their deliveries, in batches.
//
// The first settlement starts a flush at once; those that arrive while it runs form the next batch. A batch
// is one transaction. A bad item is found by bisection and harms only itself. While the database is away,
// settlements wait; whether the lease still holds is decided by the database when they are written.
#pragma once

#include <coroutine>
#include <deque>
#include <memory>
#include <vector>

#include "postrider/delivery/attempt.hpp"
#include "postrider/delivery/lane.hpp"
#include "postrider/delivery/verdict.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"
#include "postrider/telemetry/metrics.hpp"

namespace postrider::delivery {

struct Settlement {
  LanePtr lane;
  Row row;  // as it was before the attempt
  Verdict verdict;
  AttemptFacts facts;
};

enum class Written {
  now,        // durable
  before,     // durable: an earlier try, whose result was lost, had written it
  late,       // the row had changed or the bucket has another owner: nothing was written
  refused,    // Postgres refuses it whatever is left out: the row stays as it is, for a person to look at
  abandoned,  // the shard stopped first: it may or may not be durable
};

struct SettlerOptions {
  model::NodeId node_id;
  size_t batch_items_max = 500;
};

class Settler {
 public:
  Settler(runtime::Loop& loop, pg::Link& link, telemetry::Metrics& metrics, SettlerOptions options);

  // const Written written = co_await settler.settle(settlement);
  // The settlement must live until then, and `settle` may cut its facts short.
  class Writing {
   public:
    bool await_ready() const noexcept { return settler_.is_stopping_; }
    void await_suspend(std::coroutine_handle<> waiting);
    Written await_resume() const noexcept { return written_; }

   private:
    friend class Settler;
    Writing(Settler& settler, Settlement& settlement) : settler_(settler), settlement_(settlement) {}
    Settler& settler_;
    Settlement& settlement_;
    std::coroutine_handle<> waiting_;
    Written written_ = Written::abandoned;
  };
  Writing settle(Settlement& settlement) { return Writing(*this, settlement); }

  size_t waiting() const { return waiting_.size() + writing_; }
  // Returns when nothing waits, at the deadline, or when the database has been away for seconds.
  runtime::Task<void> drain(base::SteadyTime deadline);
  void abandon() { is_stopping_ = true; }  // unwritten settlements are given up; then stop the link
  runtime::Task<void> stop();

 private:
  using Batch = std::vector<Writing*>;
  enum class Repeat { no, yes };  // yes: an earlier try may have been committed

  runtime::Task<void> run();
  Batch take_batch();
  runtime::Task<void> write(Batch batch, Repeat repeat);
  runtime::Task<void> write_once(const Batch& batch, Repeat repeat);
  // False: not now, but maybe in a moment.
  runtime::Task<bool> make_partitions(const Batch& batch);
  static void drop_details(const Batch& batch);
  void report(const Batch& batch, const std::vector<model::DeliveryId>& settled, Repeat repeat);
  // Resumes the attempt that waits; `writing` is gone afterwards.
  static void finish(Writing& writing, Written written);
  pg::Batch statements(const Batch& batch) const;

  runtime::Loop& loop_;
  pg::Link& link_;
  telemetry::Metrics& metrics_;
  SettlerOptions options_;
  std::deque<Writing*> waiting_;
  size_t writing_ = 0;
  bool is_running_ = false;
  bool is_stopping_ = false;
  runtime::Wakeup pause_, idle_;
  runtime::TaskGroup tasks_;
};

}  // namespace postrider::delivery
