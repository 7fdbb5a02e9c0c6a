// Recurring tasks of a node: creates partitions ahead of time and drops old ones, trims logs, reads gauges,
// updates statistics, and notifies operators about endpoints.
//
// Every task is safe to run on several nodes at once and twice in a row. A task that fails is logged and runs
// again at its next turn. Used on its loop only.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "postrider/pg/link.hpp"
#include "postrider/runtime/service.hpp"
#include "postrider/upkeep/health.hpp"
#include "postrider/upkeep/metrics.hpp"
#include "postrider/upkeep/retention.hpp"

namespace postrider::upkeep {

constexpr int kPartitionDaysBack = 7;
constexpr int kPartitionDaysAhead = 14;

// Creates the partitions that are missing; returns how many. Called once before a node serves, so that a node
// which was stopped for weeks finds today's. Throws pg::Error.
runtime::Task<int> create_partitions(pg::Link& link, int days_back = kPartitionDaysBack);

struct UpkeepOptions {
  RetentionOptions retention;
  HealthOptions health = {};

  void validate() const;
};

class Upkeep : public runtime::Service {
 public:
  Upkeep(runtime::Loop& loop, pg::Link& link, const telemetry::Metrics& metrics, UpkeepOptions options);

 private:
  struct Routine {
    std::string name;
    std::chrono::seconds interval;
    std::function<runtime::Task<void>()> run;
    base::SteadyTime due{};
  };

  // Runs every routine that is due.
  runtime::Task<runtime::SteadyTime> pass(runtime::SteadyTime now) override;
  // Stops the link as well: a pass of retention may take minutes, and the next one continues its work.
  runtime::Task<void> interrupt() override;
  runtime::Task<void> keep_partitions();
  runtime::Task<void> trim_logs();
  runtime::Task<void> read_gauges();
  runtime::Task<void> count_endpoints();
  runtime::Task<void> analyze_parents();
  runtime::Task<void> notify_of_health();
  runtime::Task<void> notify_of_degraded();
  runtime::Task<void> notify_of_dead_letters();
  runtime::Task<void> drop_old();
  std::vector<base::Timestamp> postponed_hours();
  runtime::Task<void> close_hours();
  runtime::Task<void> add_up_dead_letters();

  pg::Link& link_;
  pg::SessionLease retention_lease_;
  pg::LeaseRenewer retention_renewer_;
  Metrics metrics_;
  UpkeepOptions options_;
  std::vector<Routine> routines_;
  std::map<base::Timestamp, base::SteadyTime> postponed_;  // hours that could not be closed, and until when
};

}  // namespace postrider::upkeep
