// Shared by the tests of whole nodes.
#pragma once

#include "postrider/delivery/delivery_testing.hpp"
#include "postrider/delivery/engine.hpp"

namespace postrider::delivery {

inline config::Config small_node_config() {
  config::Config config;
  config.shards = 1;
  config.buckets = support::buckets;
  config.lease_seconds = 10;
  config.max_in_flight = 100;
  config.lane_rows_max = 100;
  config.lane_bytes_max = 1 << 20;
  config.buffer_bytes_max = 1 << 20;
  config.response_bytes_max = 1 << 10;
  config.pooled_connections_max = 10;
  config.settle_batch_items_max = 100;
  config.breaker_failures = 5;
  config.drain_timeout = 0s;
  return config;
}

}  // namespace postrider::delivery
