// Commits a batch of items in one transaction and deals with what can go wrong:
//
// - After a temporary error, or without a database, the batch is retried, with growing pauses.
// - A batch that fails because of its data is split until the bad item is found. The others are committed.
// - If the connection is lost during a commit, the result is unknown. The batch is tried again with the same
//   IDs, and the writer learns that it may have been committed already.
// - Missing objects, such as the partition of a new day, are created.
//
// BatchWriter has the statements and decides what a failure means for the items; CommitPolicy has the limits.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "postrider/base/backoff.hpp"
#include "postrider/pg/error.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::pg {

struct CommitPolicy {
  base::Backoff::Limits pauses;
  // False: a passing error ends the run (give_up); the caller starts another one later.
  bool retries_passing_errors = true;
  // True: an error of Kind::other may be caused by an item, so the batch is split. One that is the server's
  // (disk full) is retried. For writers that must not lose anything.
  bool splits_other_errors = false;
  int repairs_max = 1;     // since the last commit
  int rejections_max = 1;  // of one item, before it is rejected; simplify() is called in between
};

struct CommitAttempt {
  std::optional<runtime::SteadyTime> deadline;  // none: retry forever
  bool may_be_committed = false;                // an earlier attempt ended with Kind::unknown
};

enum class Repair {
  none,   // nothing can be done about this error
  done,   // try again
  later,  // not possible now: try again, and repair again
};

// Commits subranges of a batch, in its order.
template <class Item>
class BatchWriter {
 public:
  using Items = std::span<const Item>;

  // One transaction. Throws Error, and then nothing was written; or, Kind::unknown, perhaps everything.
  virtual runtime::Task<void> write(Items items, CommitAttempt attempt) = 0;
  // The database rejects this item, in any batch. An exception ends the run.
  virtual runtime::Task<void> reject(const Item& item, const Error& error) = 0;
  // These items were not written, or perhaps they were (attempt.may_be_committed): the deadline has passed,
  // the error is not one to retry, or the run was canceled. An exception ends the run.
  virtual void give_up(Items items, const Error& error, CommitAttempt attempt) = 0;

  // Called for Kind::item and Kind::retry. Creates what the items need.
  virtual runtime::Task<Repair> repair(Items items, const Error& error) {
    (void)items;
    (void)error;
    co_return Repair::none;
  }
  // Leaves out the parts of an item that can be done without.
  virtual void simplify(const Item& item) { (void)item; }

 protected:
  ~BatchWriter() = default;
};

// A row found no partition: a check violation without a constraint.
bool is_missing_partition(const Error& error);

// The next step after a failed attempt, if nothing could be repaired. Pure.
enum class NextStep { retry, simplify, split, reject, give_up };
struct CommitProgress {
  size_t items = 1;
  int rejections = 0;    // of a single item, before this one
  bool is_over = false;  // the deadline has passed
  CommitAttempt attempt = {};
};
NextStep next_step(const Error& error, const CommitPolicy& policy, const CommitProgress& progress);

// One run at a time.
template <class Item>
class BatchCommit {
 public:
  using Items = std::span<const Item>;

  BatchCommit(runtime::Loop& loop, CommitPolicy policy) : policy_(policy), pause_(loop) {}

  // Returns when each item was written, rejected or abandoned. The items must live until then. Throws only
  // what the writer's reject(), give_up() and repair() throw.
  runtime::Task<void> run(BatchWriter<Item>& writer, Items items, CommitAttempt first = {});

  // No further attempt is made: items that are not written yet are abandoned when the attempt in progress
  // ends. end_pause() also ends a pause between two attempts, and may resume the run before it returns.
  void cancel() { is_canceled_ = true; }
  void end_pause() { pause_.notify(); }

 private:
  struct Part {
    Items items;
    CommitAttempt attempt;
    int rejections = 0;
  };

  runtime::Task<bool> repaired(BatchWriter<Item>& writer, const Part& part, const Error& error);
  bool is_over(const Part& part) const {
    return part.attempt.deadline && base::BootClock::now() >= *part.attempt.deadline;
  }
  runtime::Wakeup::Wait pause(const Part& part, base::Backoff& backoff) {
    const auto until = base::BootClock::now() + backoff.next();
    return pause_.wait_until(std::min(until, part.attempt.deadline.value_or(until)));
  }

  CommitPolicy policy_;
  runtime::Wakeup pause_;
  int repairs_ = 0;  // since the last commit
  bool is_canceled_ = false;
};

template <class Item>
runtime::Task<void> BatchCommit<Item>::run(BatchWriter<Item>& writer, Items items, CommitAttempt first) {
  std::vector<Part> later;  // second halves, in reverse order
  Part part{.items = items, .attempt = first};
  base::Backoff backoff(policy_.pauses);
  repairs_ = 0;
  while (true) {
    std::optional<Error> error;
    try {
      if (is_canceled_) throw Error(Kind::unavailable, "canceled");
      co_await writer.write(part.items, part.attempt);
      repairs_ = 0;
    } catch (const Error& failure) {
      error = failure;
    }
    if (error) {
      if (error->kind() == Kind::unknown) part.attempt.may_be_committed = true;
      auto step = NextStep::give_up;
      if (!is_canceled_) {
        const bool is_repaired = co_await repaired(writer, part, *error);
        step = is_repaired ? NextStep::retry
                           : next_step(*error, policy_,
                                       {part.items.size(), part.rejections, is_over(part), part.attempt});
      }
      if (step == NextStep::simplify) {
        ++part.rejections;
        writer.simplify(part.items.front());
      }
      if (step == NextStep::retry || step == NextStep::simplify) {
        co_await pause(part, backoff);
        continue;
      }
      if (step == NextStep::split) {
        const size_t half = part.items.size() / 2;
        later.push_back({part.items.subspan(half), part.attempt});
        part = {part.items.first(half), part.attempt};
        backoff.reset();
        continue;
      }
      if (step == NextStep::reject) co_await writer.reject(part.items.front(), *error);
      if (step == NextStep::give_up) writer.give_up(part.items, *error, part.attempt);
    }
    if (later.empty()) co_return;
    part = later.back();
    later.pop_back();
    backoff.reset();
  }
}

template <class Item>
runtime::Task<bool> BatchCommit<Item>::repaired(BatchWriter<Item>& writer, const Part& part,
                                                const Error& error) {
  const bool is_repairable = error.kind() == Kind::item || error.kind() == Kind::retry;
  if (!is_repairable || is_over(part) || repairs_ >= policy_.repairs_max) co_return false;
  const Repair repair = co_await writer.repair(part.items, error);
  if (repair == Repair::done) ++repairs_;
  co_return repair != Repair::none;
}

}  // namespace postrider::pg
