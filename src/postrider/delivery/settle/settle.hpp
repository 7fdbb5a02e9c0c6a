// Step "settle": records attempts and the new state of their deliveries, in batches.
//
// The first settlement starts a flush at once; those that arrive while it runs form the next batch. A batch
// is one transaction. A bad item is found by bisection and fails alone. While the database is unavailable,
// settlements wait; when they are written, the database decides whether the lease is still valid.
#pragma once

#include <coroutine>
#include <memory>
#include <vector>

#include "postrider/delivery/attempt/attempt.hpp"
#include "postrider/delivery/attempt/metrics.hpp"
#include "postrider/delivery/attempt/verdict.hpp"
#include "postrider/delivery/lanes/lane.hpp"
#include "postrider/pg/batch_commit.hpp"
#include "postrider/pg/batcher.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::delivery {

struct Settlement {
  LanePtr lane;
  QueueRow row;  // as it was before the attempt
  Verdict verdict;
  AttemptFacts facts;
  bool is_probe = false;
  Turn turn = Turn::first;  // where a failed probe goes back to

  // It uses no attempt: the history has it besides the attempts, and the delivery stays as it was.
  bool is_failed_probe() const {
    return is_probe && verdict.kind == Verdict::Kind::retrying && !verdict.raises_attempts;
  }
};

enum class Written {
  now,        // durable
  before,     // durable: an earlier try, whose result was lost, had written it
  late,       // the row had changed or the bucket has another owner: nothing was written
  rejected,   // Postgres rejects it even without details: the row stays as it is, for a person to inspect
  abandoned,  // the shard stopped first: it may or may not be durable
};

struct SettlerOptions {
  model::NodeId node_id;
  size_t batch_items_max = 500;
};

class Settler;

// const Written written = co_await settler.settle(settlement);
class SettlementWrite {
 public:
  bool await_ready() const noexcept;
  void await_suspend(std::coroutine_handle<> waiting);
  Written await_resume() const noexcept { return written_; }

 private:
  friend class Settler;
  SettlementWrite(Settler& settler, Settlement& settlement) : settler_(settler), settlement_(settlement) {}
  Settler& settler_;
  Settlement& settlement_;
  std::coroutine_handle<> waiting_;
  Written written_ = Written::abandoned;
};

class Settler final : private pg::BatchWriter<SettlementWrite*> {
 public:
  Settler(runtime::Loop& loop, pg::Link& link, const Metrics& metrics, SettlerOptions options);

  // The settlement must live until the result is awaited, and `settle` may leave out details of its facts.
  SettlementWrite settle(Settlement& settlement) { return SettlementWrite(*this, settlement); }

  size_t waiting() const { return batcher_.pending(); }
  // Returns when nothing waits, at the deadline, or when the database has been unavailable for seconds.
  runtime::Task<void> drain(base::SteadyTime deadline);
  // Unwritten settlements are abandoned. Then stop the link, and then the settler.
  void abandon();
  runtime::Task<void> stop();

 private:
  friend class SettlementWrite;
  using Batch = std::vector<SettlementWrite*>;

  runtime::Task<void> flush(Batch batch);
  runtime::Task<void> write(Items batch, pg::CommitAttempt attempt) override;
  runtime::Task<void> reject(SettlementWrite* const& item, const pg::Error& error) override;
  runtime::Task<pg::Repair> repair(Items batch, const pg::Error& error) override;
  void simplify(SettlementWrite* const& item) override;
  void give_up(Items batch, const pg::Error& error, pg::CommitAttempt attempt) override;

  void report(Items batch, const std::vector<model::DeliveryId>& settled, bool may_be_committed);
  // Resumes the attempt that waits; the write is gone afterwards.
  static void finish(SettlementWrite& write, Written written);
  struct Statements;
  Statements statements(Items batch) const;

  runtime::Loop& loop_;
  pg::Link& link_;
  const Metrics& metrics_;
  SettlerOptions options_;
  bool is_stopping_ = false;
  pg::Batcher<SettlementWrite*> batcher_;
  pg::BatchCommit<SettlementWrite*> commit_;
  runtime::Wakeup idle_;
};

}  // namespace postrider::delivery
