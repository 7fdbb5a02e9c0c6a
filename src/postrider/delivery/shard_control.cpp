// What people want done at once: a delivery canceled or sent now, the brakes of an incident.
#include <utility>

#include "postrider/delivery/shard.hpp"

namespace postrider::delivery {

namespace {

using namespace std::chrono_literals;

constexpr auto kFetchPause = 100ms;

}  // namespace

// Its row is gone from the table already. If it is being sent right now, that ends as it ends; its result
// finds no row and is dropped.
void Shard::forget_delivery(model::EndpointId endpoint, model::DeliveryId delivery) {
  const auto found = lanes_.find(endpoint);
  if (found == lanes_.end()) return;
  const LanePtr lane = found->second;
  for (const Turn turn : {Turn::first, Turn::retry}) {
    lane->buffer(turn).remove(delivery);
    // It may be among the rows that are on their way.
    if (lane->buffer(turn).is_fetching()) canceled_[delivery] = base::BootClock::now();
  }
  touch(lane);
}

// The table says that it is due. If it is being sent right now, that was the wish.
void Shard::hurry_delivery(model::EndpointId endpoint, model::DeliveryId delivery) {
  const auto found = lanes_.find(endpoint);
  if (found == lanes_.end()) return;  // it is read when the lane is
  const LanePtr lane = found->second;
  for (const Turn turn : {Turn::first, Turn::retry}) {
    RowBuffer& buffer = lane->buffer(turn);
    if (buffer.is_fetching()) {
      // What is on its way from the table may still have the old time.
      tasks_.spawn(hurry_later(endpoint, delivery));
      return;
    }
  }
  // Its time is the table's: it is read from there.
  for (const Turn turn : {Turn::first, Turn::retry}) {
    lane->buffer(turn).remove(delivery);
    lane->buffer(turn).expect_more();
  }
  lane->held_until = {};
  touch(lane);
}

runtime::Task<void> Shard::hurry_later(model::EndpointId endpoint, model::DeliveryId delivery) {
  runtime::Wakeup pause(tools_.loop);
  co_await pause.wait_for(kFetchPause);
  if (!is_stopping_) hurry_delivery(endpoint, delivery);
}

void Shard::set_brakes(const Brakes& brakes) {
  chooser_.set_brakes(brakes, now().steady);
  pump_soon();
}

}  // namespace postrider::delivery
