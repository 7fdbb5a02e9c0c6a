#include "postrider/delivery/delivery_control.hpp"

namespace postrider::delivery {

namespace {

using namespace std::chrono_literals;

constexpr auto kFetchPause = 100ms;

}  // namespace

void DeliveryControl::cancel(model::EndpointId endpoint, model::DeliveryId delivery) {
  const LanePtr lane = lanes_.find(endpoint);
  if (!lane) return;
  for (const Turn turn : kBothTurns) lane->buffer(turn).remove(delivery);
  // It may be among the rows that a running fetch brings.
  if (lane->is_fetching()) seen_.canceled(delivery, base::BootClock::now());
  events_.changed(lane);
}

void DeliveryControl::expedite(model::EndpointId endpoint, model::DeliveryId delivery) {
  const LanePtr lane = lanes_.find(endpoint);
  if (!lane) return;  // the new time is read with the lane's rows
  if (lane->is_fetching()) {
    // The rows that this fetch brings may still have the old time.
    tasks_.spawn(expedite_later(endpoint, delivery));
    return;
  }
  // The new time is read from the table.
  for (const Turn turn : kBothTurns) lane->buffer(turn).remove(delivery);
  lane->expect_more();
  lane->lift_hold();
  events_.changed(lane);
}

runtime::Task<void> DeliveryControl::expedite_later(model::EndpointId endpoint, model::DeliveryId delivery) {
  runtime::Wakeup pause(loop_);
  co_await pause.wait_for(kFetchPause);
  if (!is_stopping_) expedite(endpoint, delivery);
}

runtime::Task<void> DeliveryControl::stop() {
  is_stopping_ = true;
  co_await tasks_.join();
}

}  // namespace postrider::delivery
