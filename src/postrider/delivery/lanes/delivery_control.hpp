// Requests for one delivery: cancel it, or send it now.
#pragma once

#include <utility>
#include <vector>

#include "postrider/delivery/lanes/lane_table.hpp"
#include "postrider/delivery/lanes/seen_deliveries.hpp"

namespace postrider::delivery {

class DeliveryControl {
 public:
  DeliveryControl(LaneTable& lanes, SeenDeliveries& seen, LaneEvents& events)
      : lanes_(lanes), seen_(seen), events_(events) {}

  // Its row has left the table. If it is in flight, its result will find no row and be dropped.
  void cancel(model::EndpointId endpoint, model::DeliveryId delivery);
  // Its row is due now. If it is already in flight there is nothing to do.
  void expedite(model::EndpointId endpoint, model::DeliveryId delivery);
  // The lane changed; a fetch may have ended.
  void changed(const Lane& lane) {
    if (!after_fetch_.empty()) run_after_fetch(lane);
  }

 private:
  using Waiting = std::pair<model::EndpointId, model::DeliveryId>;
  void run_after_fetch(const Lane& lane);

  LaneTable& lanes_;
  SeenDeliveries& seen_;
  LaneEvents& events_;
  std::vector<Waiting> after_fetch_;  // to be expedited when the fetch of the lane ends
};

}  // namespace postrider::delivery
