// Moves rows of an outbox in another database: read, published under the row's id, then marked as processed.
// A crash in between publishes them again under the same id, and that is the same event.
#pragma once

#include <map>

#include "postrider/outbox/drainer.hpp"
#include "postrider/outbox/held_tenants.hpp"
#include "postrider/outbox/sink.hpp"
#include "postrider/outbox/stuck.hpp"

namespace postrider::outbox {

class OtherDatabaseDrainer : public OutboxDrainer {
 public:
  // The link is the one to the other database, whose session holds the lease.
  OtherDatabaseDrainer(std::string name, pg::Link& link, Sink& sink, OutboxMetrics series,
                       DrainLimits limits);
  // Rows that are set aside are reported as an operational event; otherwise only in the log.
  void report_to(StuckReporter& reporter) { stuck_ = &reporter; }

  runtime::Task<bool> drain_fresh(Window& window) override;
  runtime::Task<bool> drain_failed() override;
  std::optional<base::SteadyTime> due_at() const override { return held_.due_at(); }
  runtime::Task<void> tidy() override;

 private:
  // The first row of each tenant that the sink throttles. It and those after it are as they were.
  using Throttled = std::map<std::string, Position>;
  struct Moved {
    int published = 0;
    Throttled throttled;
  };
  // Throws Error(retry) when the sink takes nothing now; what it took is marked.
  runtime::Task<Moved> move(std::vector<OutboxRow> rows);
  runtime::Task<pg::Rows> mark(std::vector<Failure> failures, std::vector<int64_t> published);
  // Throws Error(unavailable) if that are too many.
  void hold(const Throttled& throttled);
  // Some rows of one tenant whose pause is over. False: it got nothing through.
  runtime::Task<bool> drain_held();
  runtime::Task<void> remove_old();
  // False: there was none. Throws std::runtime_error when the archive cannot be written; then nothing is
  // removed.
  runtime::Task<bool> archive_old(base::SteadyTime deadline);

  std::string name_;
  pg::Link& link_;
  Sink& sink_;
  OutboxMetrics series_;
  DrainLimits limits_;
  StuckReporter* stuck_ = nullptr;
  HeldTenants held_;
};

}  // namespace postrider::outbox
