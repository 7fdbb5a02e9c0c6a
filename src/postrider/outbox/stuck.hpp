// Reports rows that were set aside with the operational event `outbox.stuck`: the first row at once, later
// ones together after at most a minute. Reports that a node had not sent when it died are lost; the rows
// are still listed and counted in the metrics.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "postrider/base/time.hpp"
#include "postrider/outbox/drainer.hpp"

namespace postrider::outbox {

// Pure.
class StuckCounts {
 public:
  explicit StuckCounts(std::string outbox) : outbox_(std::move(outbox)) {}
  void add(const std::vector<SetAside>& rows);
  // The data of the event, if it is time for one.
  std::optional<std::string> due(base::SteadyTime now) const;
  void told(base::SteadyTime now);

 private:
  std::string outbox_;
  int64_t rows_ = 0;
  std::vector<SetAside> first_;
  std::optional<base::SteadyTime> reported_at_;
};

// Used on the link's loop.
class StuckReporter {
 public:
  // The link is one to postrider's own database.
  StuckReporter(std::string outbox, pg::Link& link) : counts_(std::move(outbox)), link_(link) {}
  void add(const std::vector<SetAside>& rows) { counts_.add(rows); }
  // Sends the reports that are due. Does not throw: a report that fails is sent later.
  runtime::Task<void> report();

 private:
  StuckCounts counts_;
  pg::Link& link_;
};

}  // namespace postrider::outbox
