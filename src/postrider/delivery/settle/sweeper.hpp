// Ends the rows of endpoints that get nothing any more: of a disabled endpoint they become dead letters, of a
// deleted one they are canceled, and so are the older rows of an endpoint whose pending deliveries were
// canceled. Rows that are committed later are announced like all others and swept then.
#pragma once

#include <unordered_map>

#include "postrider/delivery/attempt/metrics.hpp"
#include "postrider/delivery/lanes/lane_loader.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::delivery {

struct SweeperTools {
  runtime::Loop& loop;
  pg::Link& link;
  const Metrics& metrics;
  LaneLoader& loader;
};

class Sweeper {
 public:
  Sweeper(SweeperTools tools, model::NodeId node, LaneEvents& events)
      : tools_(tools), node_(node), events_(events) {}

  // Harmless if the lane has no work or is being swept already.
  void sweep(const LanePtr& lane);

  void abandon();
  runtime::Task<void> stop();

 private:
  enum class Swept { failed, some, none_left };

  struct Running {
    explicit Running(runtime::Loop& loop) : changed(loop), pause(loop) {}
    runtime::Wakeup changed;  // the lane: an attempt or a fetch ended
    runtime::Wakeup pause;    // after a failure
  };

  runtime::Task<void> run(LanePtr lane);
  runtime::Task<bool> sweep_pages(LanePtr lane, Running& running);
  bool wants_sweep(const Lane& lane) const;
  runtime::Task<Swept> sweep_page(LanePtr lane);
  void count(const LaneConfig& config, size_t rows);

  SweeperTools tools_;
  model::NodeId node_;
  LaneEvents& events_;
  std::unordered_map<const Lane*, Running*> running_;  // each in its coroutine
  bool is_stopping_ = false;
  runtime::TaskGroup tasks_;
};

}  // namespace postrider::delivery
