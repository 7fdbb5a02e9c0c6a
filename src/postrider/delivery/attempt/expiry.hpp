// Finds the expired deliveries of an endpoint. Pure.
//
// The clock of a delivery starts at its creation (of a replay: at its `not_before`) and stands still while
// its endpoint, its tenant or everything is paused, and while nothing can be signed. Nothing else stops it.
// So among the deliveries of an endpoint the older ones expire first, and one time separates them.
#pragma once

#include <chrono>
#include <vector>

#include "postrider/base/time.hpp"
#include "postrider/registry/pause_span.hpp"

namespace postrider::delivery {

struct ExpiryClock {
  std::chrono::seconds give_up{};
  registry::PauseSpans pauses;    // in order, not overlapping
  registry::PauseSpans unserved;  // when no node served the bucket
};

class Expiry {
 public:
  Expiry(const ExpiryClock& clock, base::Timestamp now);

  // Deliveries created up to then are past their deadline.
  base::Timestamp cutoff() const { return cutoff_; }

  // Past its deadline, and not owed an attempt: a delivery whose deadline passed while no node served it
  // gets one attempt before it expires. It waits for that up to give_up again.
  bool is_expired(base::Timestamp created_at) const;

 private:
  struct Owed {
    base::Timestamp after, up_to;  // creation times
  };
  base::Timestamp cutoff_;
  std::vector<Owed> owed_;
};

}  // namespace postrider::delivery
