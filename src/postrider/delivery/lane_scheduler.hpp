// Works out what each lane needs next and arranges it: its configuration, rows or bodies, a place in the
// chooser, a wake-up, or a sweep.
#pragma once

#include <memory>

#include "postrider/delivery/lanes/lane_loader.hpp"
#include "postrider/delivery/lanes/lane_table.hpp"
#include "postrider/delivery/sender.hpp"
#include "postrider/delivery/settle/endpoint_state.hpp"
#include "postrider/delivery/settle/sweeper.hpp"

namespace postrider::delivery {

struct SchedulerTools {
  runtime::Loop& loop;
  const model::IdSource& clock;
  MemoryBudget& budget;
  SeenDeliveries& seen;
  LaneTable& lanes;
  Chooser& chooser;
  EndpointState& endpoints;
  LaneLoader& loader;
  Sweeper& sweeper;
  Sender& sender;
};

class LaneScheduler {
 public:
  explicit LaneScheduler(SchedulerTools tools);

  // Something about the lane changed. Cheap when there is nothing to do.
  void schedule(const LanePtr& lane);
  // Its configuration was loaded. Null: there is no such endpoint.
  void configured(const LanePtr& lane, std::shared_ptr<const LaneConfig> config);

  void stop() { house_timer_.cancel(); }

 private:
  Now now() const { return {base::BootClock::now(), tools_.clock.now()}; }
  void schedule_turn(const LanePtr& lane, Turn turn, const Now& at);
  void keep_house();

  SchedulerTools tools_;
  runtime::Timer house_timer_;
};

}  // namespace postrider::delivery
