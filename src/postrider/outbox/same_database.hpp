// Drains the outbox in postrider's own database: a row is deleted and its event published in one transaction,
// so each row is published exactly once.
#pragma once

#include "postrider/outbox/drainer.hpp"
#include "postrider/outbox/stuck.hpp"
#include "postrider/publish/event_writer.hpp"

namespace postrider::outbox {

class SameDatabaseDrainer : public OutboxDrainer, private pg::BatchWriter<int64_t> {
 public:
  // The link is the one whose session holds the lease, and the writer's.
  SameDatabaseDrainer(runtime::Loop& loop, pg::Link& link, publish::EventWriter& writer, OutboxMetrics series,
                      DrainLimits limits);

  runtime::Task<bool> drain_fresh(Window& window) override;
  runtime::Task<bool> drain_failed() override;

 private:
  // Rows that are locked by their transaction.
  struct Chunk {
    pg::Transaction transaction;
    std::vector<OutboxRow> rows;
  };

  void set_aside(const pg::Rows& failed);
  runtime::Task<void> drain_all(Chunk chunk);
  runtime::Task<Chunk> read_listed(Items ids);
  // Publishes and removes the rows, records errors, commits. Throws pg::Error, and then nothing is done.
  runtime::Task<void> move(Chunk chunk);

  runtime::Task<void> write(Items ids, pg::CommitAttempt attempt) override;
  runtime::Task<void> reject(const int64_t& id, const pg::Error& error) override;
  runtime::Task<pg::Repair> repair(Items ids, const pg::Error& error) override;
  void give_up(Items ids, const pg::Error& error, pg::CommitAttempt attempt) override;

  pg::Link& link_;
  publish::EventWriter& writer_;
  OutboxMetrics series_;
  DrainLimits limits_;
  StuckReporter stuck_;
  pg::BatchCommit<int64_t> commit_;
  std::optional<Chunk> first_;  // of a run: read before it began
};

}  // namespace postrider::outbox
