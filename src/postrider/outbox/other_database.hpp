// Moves rows of an outbox in another database: read, published under the row's id, then marked as processed.
// A crash in between publishes them again under the same id, and that is the same event.
#pragma once

#include "postrider/outbox/mover.hpp"
#include "postrider/outbox/sink.hpp"

namespace postrider::outbox {

class OtherDatabaseMover : public Mover {
 public:
  // The link is the one to the other database, whose session holds the lease.
  OtherDatabaseMover(std::string name, pg::Link& link, Sink& sink, telemetry::OutboxSeries series,
                     MoveLimits limits);

  runtime::Task<bool> move_fresh(Window& window) override;
  runtime::Task<bool> move_failed() override;
  runtime::Task<void> tidy() override;

 private:
  // Throws Error(retry) when the sink takes nothing now; what it took is marked.
  runtime::Task<void> move(std::vector<Row> rows);

  std::string name_;
  pg::Link& link_;
  Sink& sink_;
  telemetry::OutboxSeries series_;
  MoveLimits limits_;
};

}  // namespace postrider::outbox
