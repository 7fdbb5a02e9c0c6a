#include "postrider/delivery/lanes/delivery_control.hpp"

#include <algorithm>

namespace postrider::delivery {

void DeliveryControl::cancel(model::EndpointId endpoint, model::DeliveryId delivery) {
  // The row may be in the result of a running statement, or in a handoff that has not arrived yet.
  seen_.canceled(delivery, base::BootClock::now());
  const LanePtr lane = lanes_.find(endpoint);
  if (!lane) return;
  for (const Turn turn : kBothTurns) lane->buffer(turn).remove(delivery);
  events_.changed(lane);
}

void DeliveryControl::expedite(model::EndpointId endpoint, model::DeliveryId delivery) {
  const LanePtr lane = lanes_.find(endpoint);
  if (!lane) return;  // the new time is read with the lane's rows
  if (lane->is_fetching()) {
    // The rows of this fetch may still have the old time. Its end is reported to changed().
    after_fetch_.emplace_back(endpoint, delivery);
    return;
  }
  // The new time is read from the table.
  for (const Turn turn : kBothTurns) lane->buffer(turn).remove(delivery);
  lane->expect_more();
  lane->lift_hold();
  events_.changed(lane);
}

void DeliveryControl::run_after_fetch(const Lane& lane) {
  if (lane.is_fetching()) return;
  const auto rest = std::partition(after_fetch_.begin(), after_fetch_.end(), [&](const Waiting& each) {
    return each.first != lane.endpoint && lanes_.find(each.first);
  });
  const std::vector<Waiting> ready(rest, after_fetch_.end());
  after_fetch_.erase(rest, after_fetch_.end());
  for (const auto& [endpoint, delivery] : ready) expedite(endpoint, delivery);
}

}  // namespace postrider::delivery
