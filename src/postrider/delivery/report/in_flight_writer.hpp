// Writes which deliveries this node has been sending for a second or longer, so that lists, views and people
// see them as `processing`. Runs once a second and writes only changes; a shorter exchange is never written.
// One loop.
#pragma once

#include <functional>
#include <vector>

#include "postrider/delivery/report/in_flight.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/runtime/service.hpp"

namespace postrider::delivery {

class InFlightWriter : public runtime::Service {
 public:
  static constexpr std::chrono::seconds kInterval{1};
  static constexpr std::chrono::seconds kAge{1};
  static constexpr size_t kMax = 10'000;  // the oldest ones of each shard

  // `collect` returns what all shards have been sending for kAge or longer.
  using Collect = std::function<runtime::Task<std::vector<InFlight>>()>;
  InFlightWriter(runtime::Loop& loop, pg::Link& link, model::NodeId node, Collect collect);

 private:
  runtime::Task<runtime::SteadyTime> pass(runtime::SteadyTime now) override;
  runtime::SteadyTime first_pass_at(runtime::SteadyTime now) const override { return now + kInterval; }
  runtime::Task<void> finish() override;  // removes its rows
  runtime::Task<void> collect_and_write();
  runtime::Task<void> write(std::vector<InFlight> now);

  pg::Link& link_;
  model::NodeId node_;
  Collect collect_;
  std::vector<InFlight> written_;  // last; sorted
};

}  // namespace postrider::delivery
