// Group commit: the first item starts a flush at once, and the items that arrive while it runs form the next
// batch. Under light load nothing waits; under heavy load one flush carries many items. One loop.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "postrider/base/time.hpp"
#include "postrider/base/unique_function.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::pg {

struct BatchLimits {
  size_t items_max = 500;  // per flush
  size_t rows_max = 5'000;
  size_t bytes_max = 8 << 20;
  size_t waiting_items_max = 10'000;  // has_room() is false beyond these
  size_t waiting_bytes_max = 64 << 20;
};

struct BatchWeight {
  size_t rows = 1;
  size_t bytes = 0;
};

template <class Item>
class Batcher {
 public:
  // Only one flush runs at a time. A flush must not throw.
  using Flush = base::UniqueFunction<runtime::Task<void>(std::vector<Item>)>;

  Batcher(BatchLimits limits, Flush flush) : limits_(limits), flush_(std::move(flush)) {}

  bool has_room(size_t items, size_t bytes) const {
    return waiting_.size() + items <= limits_.waiting_items_max &&
           waiting_bytes_ + bytes <= limits_.waiting_bytes_max;
  }

  // Only queues. Call start() after the last of the items that arrived together.
  void add(Item item, BatchWeight weight) {
    waiting_bytes_ += weight.bytes;
    waiting_.push_back({std::move(item), weight});
  }

  void start() { start(nullptr); }
  // The first batch is formed in the next turn of the loop, from everything that is added until then.
  void start_next_turn(runtime::Loop& loop) { start(&loop); }

  // Items that wait or are being flushed.
  size_t pending() const { return waiting_.size() + flushing_; }
  // Called each time when nothing is pending any more.
  void on_idle(base::UniqueFunction<void()> callback) { on_idle_ = std::move(callback); }
  // Returns when nothing is pending. Add nothing meanwhile.
  runtime::Task<void> drain() { co_await group_.join(); }

 private:
  struct Entry {
    Item item;
    BatchWeight weight;
  };

  void start(runtime::Loop* loop) {
    if (is_running_ || waiting_.empty()) return;
    is_running_ = true;
    group_.spawn(run(loop));
  }

  runtime::Task<void> run(runtime::Loop* loop) {
    if (loop != nullptr) {
      runtime::Yield turn{*loop};
      co_await turn;
    }
    while (!waiting_.empty()) {
      std::vector<Item> batch = take();
      flushing_ = batch.size();
      co_await flush_(std::move(batch));
      flushing_ = 0;
    }
    is_running_ = false;
    if (on_idle_) on_idle_();
  }

  // At least one item, however heavy.
  std::vector<Item> take() {
    std::vector<Item> batch;
    BatchWeight total{0, 0};
    while (!waiting_.empty() && batch.size() < limits_.items_max) {
      const BatchWeight weight = waiting_.front().weight;
      total.rows += weight.rows;
      total.bytes += weight.bytes;
      if (!batch.empty() && (total.rows > limits_.rows_max || total.bytes > limits_.bytes_max)) break;
      batch.push_back(std::move(waiting_.front().item));
      waiting_.pop_front();
      waiting_bytes_ -= weight.bytes;
    }
    return batch;
  }

  BatchLimits limits_;
  Flush flush_;
  base::UniqueFunction<void()> on_idle_;
  std::deque<Entry> waiting_;
  size_t waiting_bytes_ = 0;
  size_t flushing_ = 0;
  bool is_running_ = false;
  runtime::TaskGroup group_;
};

// The time after which a flush abandons its items, counted from the arrival of the first one: items that
// waited for a failing flush have used up their time already. Pure.
class Patience {
 public:
  // Items that waited too long for flushes that succeeded still get this much time, so that a passing error
  // is retried, and a slow server is not taken for one that hangs.
  static constexpr std::chrono::milliseconds kLate{5'000};

  explicit Patience(std::chrono::milliseconds give_up_after) : give_up_after_(give_up_after) {}

  // No value: the time is over and the previous flush was abandoned, so do not try at all. This way all
  // flushes that wait end together.
  std::optional<base::SteadyTime> deadline(base::SteadyTime first_came, base::SteadyTime now) const {
    const base::SteadyTime over = first_came + give_up_after_;
    if (!has_given_up_) return std::max(over, now + std::min(kLate, give_up_after_));
    if (over <= now) return std::nullopt;
    return over;
  }

  void gave_up() { has_given_up_ = true; }
  void succeeded() { has_given_up_ = false; }

 private:
  std::chrono::milliseconds give_up_after_;
  bool has_given_up_ = false;
};

}  // namespace postrider::pg
