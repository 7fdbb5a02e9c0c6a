// Moves rows of an outbox in another database: read, published under the row's id, then marked as processed.
// A crash in between publishes them again under the same id, and that is the same event.
#pragma once

#include "postrider/outbox/drainer.hpp"
#include "postrider/outbox/sink.hpp"
#include "postrider/outbox/stuck.hpp"

namespace postrider::outbox {

class OtherDatabaseDrainer : public OutboxDrainer {
 public:
  // The link is the one to the other database, whose session holds the lease.
  OtherDatabaseDrainer(std::string name, pg::Link& link, Sink& sink, OutboxMetrics series,
                       DrainLimits limits);
  // Operators are told of rows that are set aside; otherwise only the log is.
  void report_to(StuckReporter& reporter) { stuck_ = &reporter; }

  runtime::Task<bool> drain_fresh(Window& window) override;
  runtime::Task<bool> drain_failed() override;
  runtime::Task<void> tidy() override;

 private:
  // Throws Error(retry) when the sink takes nothing now; what it took is marked.
  runtime::Task<void> move(std::vector<Row> rows);
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
};

}  // namespace postrider::outbox
