// Writes the shards' counts (rollup_counts.hpp) to the table rollup, every 10 s and at the end. Counts that a
// killed node did not write are corrected when the hour is closed (upkeep).
#pragma once

#include <functional>
#include <vector>

#include "postrider/delivery/report/rollup_counts.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/runtime/service.hpp"

namespace postrider::delivery {

class RollupWriter : public runtime::Service {
 public:
  static constexpr std::chrono::seconds kInterval{10};

  // `collect` returns what all shards counted since the last time.
  using Collect = std::function<runtime::Task<std::vector<RollupRow>>()>;
  RollupWriter(runtime::Loop& loop, pg::Link& link, model::NodeId node, Collect collect);

 private:
  runtime::Task<runtime::SteadyTime> pass(runtime::SteadyTime now) override;
  runtime::SteadyTime first_pass_at(runtime::SteadyTime now) const override { return now + kInterval; }
  runtime::Task<void> finish() override { co_await write(); }  // the last counts
  runtime::Task<void> write();

  pg::Link& link_;
  model::NodeId node_;
  Collect collect_;
  std::vector<RollupRow> waiting_;  // not written yet
};

}  // namespace postrider::delivery
