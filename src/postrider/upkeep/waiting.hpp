// Deliveries that wait for a pause, a brake or a hold keep their event past its time. This bounds how long:
// operators are notified at 1.5 × retain_events, and at 2 × the deliveries are canceled.
#pragma once

#include <chrono>
#include <cstdint>

#include "postrider/pg/link.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::upkeep {

// Returns how many deliveries have waited for 1.5 × or longer. Throws pg::Error.
runtime::Task<int64_t> expire_waiting(pg::Link& link, std::chrono::seconds retain_events);

}  // namespace postrider::upkeep
