// Dead letters without an attempt: deliveries that end without another request.
#pragma once

#include "postrider/delivery/attempt/attempt.hpp"
#include "postrider/delivery/attempt/verdict.hpp"

namespace postrider::delivery {

struct Ending {
  Verdict verdict;
  AttemptFacts facts;
};

// It passed its deadline while it waited.
Ending expired(base::Timestamp now);

// Retention keeps every event that a queue row needs, so the event was deleted by hand. There is no body to
// send.
Ending body_missing(base::Timestamp now);

}  // namespace postrider::delivery
