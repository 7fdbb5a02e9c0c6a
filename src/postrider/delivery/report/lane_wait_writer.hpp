// Writes what the lanes of this node wait for, so that people see why a delivery that is due is not sent.
// Runs once a second and writes only changes, all in one statement. One loop.
#pragma once

#include <functional>
#include <vector>

#include "postrider/delivery/lanes/lane_waits.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/runtime/service.hpp"

namespace postrider::delivery {

class LaneWaitWriter : public runtime::Service {
 public:
  static constexpr std::chrono::seconds kInterval{1};

  // `collect` returns what the lanes of all shards wait for.
  using Collect = std::function<runtime::Task<std::vector<LaneWait>>()>;
  LaneWaitWriter(runtime::Loop& loop, pg::Link& link, Collect collect);

 private:
  runtime::Task<runtime::SteadyTime> pass(runtime::SteadyTime now) override;
  runtime::SteadyTime first_pass_at(runtime::SteadyTime now) const override { return now + kInterval; }
  runtime::Task<void> finish() override;  // removes what it has written
  runtime::Task<void> write(std::vector<LaneWait> now);

  pg::Link& link_;
  Collect collect_;
  std::vector<LaneWait> written_;  // last; sorted
};

// What has to be written so that `after` is stored in place of `before`; both are sorted.
struct LaneWaitChange {
  LaneWait wait;
  bool is_over = false;

  bool operator==(const LaneWaitChange&) const = default;
};
std::vector<LaneWaitChange> changes_of(const std::vector<LaneWait>& before,
                                       const std::vector<LaneWait>& after);

}  // namespace postrider::delivery
