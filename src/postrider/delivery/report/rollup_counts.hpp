// Counts outcomes by hour, endpoint and event type, in memory. RollupWriter takes the counts every few
// seconds and writes them, apart from the settles. Used by one shard on its loop.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "postrider/delivery/settle/settle.hpp"
#include "postrider/model/ids.hpp"

namespace postrider::delivery {

struct RollupCounts {
  int64_t hour = 0;  // since 1970
  std::string type;
  int64_t delivered = 0, delivered_attempts = 0, first_attempt_successes = 0;
  int64_t retrying = 0;
  int64_t dead_letters = 0, dead_letter_attempts = 0;
  int64_t exchanges = 0, latency_us = 0, latency_us_max = 0;
};

struct RollupRow {
  model::TenantId tenant;
  model::EndpointId endpoint;
  RollupCounts counts;
};

class RollupCounter {
 public:
  void add(const Settlement& settlement);
  // The counts since the last call.
  std::vector<RollupRow> take();

 private:
  RollupCounts& find(const Settlement& settlement, int64_t hour, std::string_view type);

  struct OfEndpoint {
    model::TenantId tenant;
    std::vector<std::unique_ptr<RollupCounts>> counts;  // few types each; they must not move
  };
  std::unordered_map<model::EndpointId, OfEndpoint> endpoints_;
  uint64_t generation_ = 1;
};

// The type in an event's body, which begins with {"id":"…","type":"…". Empty if there is none.
std::string_view type_in(const model::EventContent& event);

}  // namespace postrider::delivery
