// Endpoint health over days: operational events and notices when an endpoint begins to fail, stays unhealthy,
// is disabled for it, or recovers; and one event per endpoint and minute about its dead letters.
//
// All state is in the database and every step is guarded there, so any number of nodes may do this.
#pragma once

#include <chrono>

#include "postrider/pg/link.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::upkeep {

// Returns how many changes were told. Throws pg::Error.
runtime::Task<int> report_health(pg::Link& link, std::chrono::seconds disable_after);
runtime::Task<int> report_dead_letters(pg::Link& link);

}  // namespace postrider::upkeep
