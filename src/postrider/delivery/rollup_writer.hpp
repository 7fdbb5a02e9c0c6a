// Writes what the shards counted (tally.hpp) to the table rollup, every 10 s and at the end. What a killed
// node had not written is put right when the hour is closed (upkeep).
#pragma once

#include <functional>
#include <vector>

#include "postrider/delivery/tally.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::delivery {

class RollupWriter {
 public:
  static constexpr std::chrono::seconds kInterval{10};

  // `collect` returns what all shards counted since the last time.
  using Collect = std::function<runtime::Task<std::vector<TallyRow>>()>;
  RollupWriter(runtime::Loop& loop, pg::Link& link, model::NodeId node, Collect collect);

  void start();
  runtime::Task<void> stop();  // once more, then no more

  runtime::Task<void> run_once();

 private:
  runtime::Task<void> run();

  pg::Link& link_;
  model::NodeId node_;
  Collect collect_;
  std::vector<TallyRow> waiting_;  // not written yet
  bool is_stopping_ = false;
  runtime::Wakeup wakeup_;
  runtime::TaskGroup tasks_;
};

}  // namespace postrider::delivery
