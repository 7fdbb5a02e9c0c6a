// Counts the deliveries in memory by what they wait for, for the metrics.
#pragma once

#include <cstddef>

#include "postrider/delivery/lanes/lane.hpp"

namespace postrider::delivery {

struct QueueDepth {
  size_t pending = 0;   // due; waits for its turn, a rate or a cap
  size_t retrying = 0;  // due later
  size_t breaker = 0;   // due; the endpoint's breaker is open
  size_t paused = 0;    // the endpoint or its tenant is paused, or all deliveries are
  size_t held = 0;      // the endpoint's secret or headers cannot be read
  size_t lanes_held = 0;
  double oldest_pending_seconds = 0;  // how long the oldest pending one has been due

  void add(const Lane& lane, base::Timestamp now, bool is_all_paused);
  QueueDepth& operator+=(const QueueDepth& other);
};

}  // namespace postrider::delivery
