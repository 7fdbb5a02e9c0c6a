// Moves rows of the outbox in postrider's own database: delete and publish are one transaction, so each row
// becomes its event exactly once.
#pragma once

#include "postrider/outbox/mover.hpp"
#include "postrider/outbox/stuck.hpp"
#include "postrider/publish/event_writer.hpp"

namespace postrider::outbox {

class SameDatabaseMover : public Mover {
 public:
  // The link is the one whose session holds the lease, and the writer's.
  SameDatabaseMover(pg::Link& link, publish::EventWriter& writer, telemetry::OutboxSeries series,
                    MoveLimits limits);

  runtime::Task<bool> move_fresh(Window& window) override;
  runtime::Task<bool> move_failed() override;

 private:
  runtime::Task<void> settle_unsure();
  void set_aside(const pg::Rows& failed);
  // Publishes and removes, records refusals, commits. Throws pg::Error, and then nothing is done.
  runtime::Task<void> move(pg::Transaction transaction, std::vector<Row> rows);
  // After an error that is the data's fault: every row alone, or in the largest group that works.
  runtime::Task<void> move_halves(std::vector<int64_t> ids, std::string why);
  runtime::Task<void> move_listed(std::vector<int64_t> ids);
  runtime::Task<void> move_or_halve(pg::Transaction transaction, std::vector<Row> rows);

  pg::Link& link_;
  publish::EventWriter& writer_;
  telemetry::OutboxSeries series_;
  MoveLimits limits_;
  StuckReporter stuck_;
  int repairs_ = 0;         // since the last success
  bool is_unsure_ = false;  // whether the last transaction was committed
};

}  // namespace postrider::outbox
