// Publish passes this to delivery in memory right after a commit, so that the usual delivery needs no fetch.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "postrider/base/time.hpp"
#include "postrider/model/ids.hpp"

namespace postrider::model {

// The part of an event that every delivery of it sends. Shared, because one event has many deliveries.
struct EventContent {
  EventId id;
  std::string public_id;    // what webhook-id says
  std::string body;         // the exact bytes
  std::string traceparent;  // empty: none
};

// One queue row as it was committed.
struct CommittedDelivery {
  DeliveryId id;
  EndpointId endpoint_id;
  TenantId tenant_id;
  int bucket = 0;
  int64_t position = 0;  // strict endpoints; others 0
  base::Timestamp due_at{};
  base::Timestamp created_at{};
  std::shared_ptr<const EventContent> event;
};

// Implemented by delivery. Call it only after the commit; deliveries of buckets that this node does not own
// are dropped (their owner finds them through the publish log). Any thread.
class Handoff {
 public:
  virtual ~Handoff() = default;
  virtual void offer(std::vector<CommittedDelivery> deliveries) = 0;
};

}  // namespace postrider::model
