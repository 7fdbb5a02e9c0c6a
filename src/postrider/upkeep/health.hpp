// Endpoint health: operational events and notices when an endpoint begins to fail, fails for a while, stays
// unhealthy for days, is disabled or paused for it, fails in part, or recovers; and one event per endpoint
// and minute about its dead letters.
//
// All state is in the database and every step is guarded there, so any number of nodes may do this.
#pragma once

#include <chrono>

#include "postrider/config/config.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::upkeep {

struct HealthOptions {
  std::chrono::seconds disable_after{0};
  // Contacts get a first notice after only failures for this time, and this number of failed attempts.
  std::chrono::seconds first_notice_after{0};
  int first_notice_failures = 1;
  // Degraded: a success rate below this percentage in an hour with this number of attempts. 0: never.
  int degraded_below = 0;
  int degraded_attempts = 1;

  static HealthOptions from(const config::Config& config);
  void validate() const;
};

// They return how many changes were reported. Throw pg::Error.
runtime::Task<int> report_health(pg::Link& link, const HealthOptions& options);
runtime::Task<int> report_degraded(pg::Link& link, const HealthOptions& options);
runtime::Task<int> report_dead_letters(pg::Link& link);

}  // namespace postrider::upkeep
