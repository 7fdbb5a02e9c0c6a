// What the due rows of each lane have been waiting for, for a second or longer, as far as only their owner
// knows it. People see it as `waiting_for`. Schedule, order, breaker, pauses and holds are in the database.
#pragma once

#include <compare>
#include <vector>

#include "postrider/delivery/lanes/choose.hpp"
#include "postrider/delivery/lanes/lane_table.hpp"

namespace postrider::delivery {

struct LaneWait {
  model::EndpointId endpoint;
  bool is_retry = false;
  int bucket = 0;
  int64_t epoch = 0;
  WaitReason reason = WaitReason::rate;

  auto operator<=>(const LaneWait&) const = default;
};

class LaneWaits {
 public:
  static constexpr std::chrono::seconds kAge{1};
  static constexpr size_t kMax = 10'000;  // further ones are reported when there is room

  // Call it once a second. A reason counts when it is found twice in a row, so that what changes all the time
  // is not reported as a change. Reads one row of each lane.
  std::vector<LaneWait> sample(const LaneTable::Lanes& lanes, Chooser& chooser, const Now& now);

 private:
  size_t reported_ = 0;  // by the last sample
};

}  // namespace postrider::delivery
