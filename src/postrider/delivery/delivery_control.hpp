// What an operator asks for one delivery: to cancel it, or to send it now.
#pragma once

#include "postrider/delivery/lane_table.hpp"
#include "postrider/delivery/seen_deliveries.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::delivery {

class DeliveryControl {
 public:
  DeliveryControl(runtime::Loop& loop, LaneTable& lanes, SeenDeliveries& seen, LaneEvents& events)
      : loop_(loop), lanes_(lanes), seen_(seen), events_(events) {}

  // Its row has left the table. If it is in flight, its result will find no row and be dropped.
  void cancel(model::EndpointId endpoint, model::DeliveryId delivery);
  // Its row is due now. If it is already in flight there is nothing to do.
  void expedite(model::EndpointId endpoint, model::DeliveryId delivery);

  void abandon() { is_stopping_ = true; }
  runtime::Task<void> stop();

 private:
  runtime::Task<void> expedite_later(model::EndpointId endpoint, model::DeliveryId delivery);

  runtime::Loop& loop_;
  LaneTable& lanes_;
  SeenDeliveries& seen_;
  LaneEvents& events_;
  bool is_stopping_ = false;
  runtime::TaskGroup tasks_;
};

}  // namespace postrider::delivery
