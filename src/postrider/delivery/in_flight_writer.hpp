// Tells the database which deliveries this node has been sending for a second or longer, so that lists, views
// and people see them as `processing`. Looks once a second and writes only when it is not what it said last;
// an exchange that is over sooner is never written. One loop.
#pragma once

#include <functional>
#include <vector>

#include "postrider/delivery/flights.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::delivery {

class InFlightWriter {
 public:
  static constexpr std::chrono::seconds kInterval{1};
  static constexpr std::chrono::seconds kAge{1};
  static constexpr size_t kMax = 10'000;  // the oldest ones of each shard

  // `collect` returns what all shards have been sending for kAge.
  using Collect = std::function<runtime::Task<std::vector<InFlight>>()>;
  InFlightWriter(runtime::Loop& loop, pg::Link& link, model::NodeId node, Collect collect);

  void start();
  runtime::Task<void> stop();  // takes back what was said

  runtime::Task<void> run_once();

 private:
  runtime::Task<void> run();
  runtime::Task<void> write(std::vector<InFlight> now);

  pg::Link& link_;
  model::NodeId node_;
  Collect collect_;
  std::vector<InFlight> said_;  // sorted
  bool is_stopping_ = false;
  runtime::Wakeup wakeup_;
  runtime::TaskGroup tasks_;
};

}  // namespace postrider::delivery
