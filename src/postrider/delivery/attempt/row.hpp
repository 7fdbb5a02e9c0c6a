// One queue row in memory: a delivery that waits in a lane, is being sent or is being settled.
#pragma once

#include <compare>
#include <memory>
#include <optional>

#include "postrider/base/time.hpp"
#include "postrider/model/handoff.hpp"
#include "postrider/model/ids.hpp"

namespace postrider::delivery {

// The order in which a lane sends; also the order of the index queue_lane.
struct RowKey {
  int64_t position = 0;
  base::Timestamp due_at{};
  model::DeliveryId id;
  auto operator<=>(const RowKey&) const = default;
};

struct QueueRow {
  RowKey key;
  model::EventId event_id;
  int attempts = 0;  // made so far
  int probes = 0;    // that failed so far, which used no attempt
  base::Timestamp created_at{};
  std::optional<base::Uuid> replay_id;
  std::shared_ptr<const model::EventContent> event;  // null: the body is not in memory

  model::DeliveryId id() const { return key.id; }
  size_t body_bytes() const { return event ? event->body.size() : 0; }
};

}  // namespace postrider::delivery
