// Group commit: the first item starts a flush at once, what arrives while it runs forms the next batch. Under
// light load nothing waits; under heavy load one flush carries many items. One loop.
#pragma once

#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "postrider/base/unique_function.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::publish {

struct BatchLimits {
  size_t items_max = 500;  // per flush
  size_t rows_max = 5'000;
  size_t bytes_max = 8 << 20;
  size_t waiting_items_max = 10'000;  // beyond these nothing more is taken
  size_t waiting_bytes_max = 64 << 20;
};

struct BatchWeight {
  size_t rows = 1;
  size_t bytes = 0;
};

template <class Item>
class Batcher {
 public:
  // Flushes run one after the other. A flush must not throw.
  using Flush = base::UniqueFunction<runtime::Task<void>(std::vector<Item>)>;

  Batcher(BatchLimits limits, Flush flush) : limits_(limits), flush_(std::move(flush)) {}

  bool has_room(size_t items, size_t bytes) const {
    return waiting_.size() + items <= limits_.waiting_items_max &&
           waiting_bytes_ + bytes <= limits_.waiting_bytes_max;
  }

  // Only queues: call start() behind the last item that arrived together.
  void add(Item item, BatchWeight weight) {
    waiting_bytes_ += weight.bytes;
    waiting_.push_back({std::move(item), weight});
  }

  void start() {
    if (is_running_ || waiting_.empty()) return;
    is_running_ = true;
    group_.spawn(run());
  }

  size_t waiting() const { return waiting_.size(); }

  // Until nothing waits and no flush runs. Add nothing meanwhile.
  runtime::Task<void> drain() { co_await group_.join(); }

 private:
  struct Entry {
    Item item;
    BatchWeight weight;
  };

  runtime::Task<void> run() {
    while (!waiting_.empty()) {
      auto flush = flush_(take());
      co_await flush;
    }
    is_running_ = false;
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
  std::deque<Entry> waiting_;
  size_t waiting_bytes_ = 0;
  bool is_running_ = false;
  runtime::TaskGroup group_;
};

}  // namespace postrider::publish
