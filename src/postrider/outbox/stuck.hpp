// Rows that were set aside become the operational event `outbox.stuck`: the first at once, what follows
// within a minute together. What a dying node had not told yet is not told; the rows themselves are listed
// and in the metrics.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "postrider/base/time.hpp"
#include "postrider/outbox/drainer.hpp"

namespace postrider::outbox {

// Pure.
class StuckTally {
 public:
  explicit StuckTally(std::string outbox) : outbox_(std::move(outbox)) {}
  void add(const std::vector<SetAside>& rows);
  // The data of the event, if it is time for one.
  std::optional<std::string> due(base::SteadyTime now) const;
  void told(base::SteadyTime now);

 private:
  std::string outbox_;
  int64_t rows_ = 0;
  std::vector<SetAside> first_;
  std::optional<base::SteadyTime> told_at_;
};

// Used on the link's loop.
class StuckReporter {
 public:
  // The link is one to postrider's own database.
  StuckReporter(std::string outbox, pg::Link& link) : tally_(std::move(outbox)), link_(link) {}
  void add(const std::vector<SetAside>& rows) { tally_.add(rows); }
  // Tells what is due; does not throw: what could not be told is told later.
  runtime::Task<void> report();

 private:
  StuckTally tally_;
  pg::Link& link_;
};

}  // namespace postrider::outbox
