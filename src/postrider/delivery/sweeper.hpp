// Removes the rows of endpoints that get nothing any more: of a disabled endpoint they become dead letters,
// of a deleted one they are canceled, and an endpoint whose pending deliveries were canceled loses the older
// ones. Rows that are committed later are announced like all others and swept then.
#pragma once

#include "postrider/delivery/lane_loader.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"
#include "postrider/telemetry/metrics.hpp"

namespace postrider::delivery {

struct SweeperTools {
  runtime::Loop& loop;
  pg::Link& link;
  telemetry::Metrics& metrics;
  LaneLoader& loader;
};

class Sweeper {
 public:
  Sweeper(SweeperTools tools, model::NodeId node, LaneEvents& events)
      : tools_(tools), node_(node), events_(events) {}

  // Harmless if the lane has no work or is being swept already.
  void sweep(const LanePtr& lane);

  void abandon() { is_stopping_ = true; }
  runtime::Task<void> stop();

 private:
  enum class Swept { failed, some, none_left };

  runtime::Task<void> run(LanePtr lane);
  bool wants_sweep(const Lane& lane) const;
  runtime::Task<Swept> sweep_page(LanePtr lane);
  void count(const LaneConfig& config, size_t rows);

  SweeperTools tools_;
  model::NodeId node_;
  LaneEvents& events_;
  bool is_stopping_ = false;
  runtime::TaskGroup tasks_;
};

}  // namespace postrider::delivery
