// Recurring duties of a node: partitions ahead of time and old ones dropped, logs trimmed, gauges read,
// statistics fresh, and operators told about endpoints.
//
// Every duty is safe to run on several nodes at once and twice in a row; one that fails is logged and tried
// again at its next turn. Used on its loop only.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "postrider/pg/link.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"
#include "postrider/telemetry/metrics.hpp"
#include "postrider/upkeep/retention.hpp"

namespace postrider::upkeep {

constexpr int kPartitionDaysBack = 7;
constexpr int kPartitionDaysAhead = 14;

// Makes the partitions that are missing; returns how many. Called once before a node serves, so that a node
// which was stopped for weeks finds today's. Throws pg::Error.
runtime::Task<int> make_partitions(pg::Link& link, int days_back = kPartitionDaysBack);

struct UpkeepOptions {
  RetentionOptions retention;
  std::chrono::seconds disable_after{0};
};

class Upkeep {
 public:
  Upkeep(runtime::Loop& loop, pg::Link& link, telemetry::Metrics& metrics, UpkeepOptions options);

  void start();
  // At once: a pass of retention may take minutes, and whatever is cut off goes on at the next one. The link
  // is stopped with it.
  runtime::Task<void> stop();

  runtime::Task<void> run_once(base::SteadyTime now);  // every duty that is due

 private:
  struct Duty {
    std::string name;
    std::chrono::seconds interval;
    std::function<runtime::Task<void>()> run;
    base::SteadyTime due{};
  };

  runtime::Task<void> run();
  runtime::Task<void> keep_partitions();
  runtime::Task<void> trim_logs();
  runtime::Task<void> read_gauges();
  runtime::Task<void> count_endpoints();
  runtime::Task<void> analyze_parents();
  runtime::Task<void> tell_health();
  runtime::Task<void> tell_dead_letters();
  runtime::Task<void> drop_old();
  std::vector<base::Timestamp> postponed_hours();
  runtime::Task<void> close_hours();
  runtime::Task<void> add_up_dead_letters();

  pg::Link& link_;
  pg::Lease retention_lease_;
  pg::LeaseKeeper retention_keeper_;
  telemetry::Metrics& metrics_;
  UpkeepOptions options_;
  std::vector<Duty> duties_;
  std::map<base::Timestamp, base::SteadyTime> postponed_;  // hours that could not be closed, and until when
  bool is_stopping_ = false;
  runtime::Wakeup wakeup_;
  runtime::TaskGroup tasks_;
};

}  // namespace postrider::upkeep
