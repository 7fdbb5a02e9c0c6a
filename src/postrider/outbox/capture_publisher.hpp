// Publishes captured messages, in the order of their commits. After a crash the same batch may come again,
// and publishes nothing twice.
#pragma once

#include <string>
#include <vector>

#include "postrider/outbox/captured.hpp"
#include "postrider/outbox/drainer.hpp"
#include "postrider/outbox/sink.hpp"
#include "postrider/publish/event_writer.hpp"

namespace postrider::outbox {

class CapturePublisher {
 public:
  // The link is the one whose session holds the lease.
  CapturePublisher(pg::Link& link, DrainLimits limits) : link_(link), limits_(std::move(limits)) {}
  virtual ~CapturePublisher() = default;

  // A message that is rejected becomes a row of the outbox, with its error. Throws pg::Error; after a `retry`
  // the same batch can be tried again.
  virtual runtime::Task<void> publish(const std::vector<Captured>& batch) = 0;
  // Writes them to the outbox instead, as postrider.publish() would have. Needs only the outbox's database.
  runtime::Task<void> spill(const std::vector<Captured>& batch);

 protected:
  pg::Link& link_;
  DrainLimits limits_;
};

// In postrider's own database: events, rejected rows and the position are one transaction, so each message is
// published exactly once.
class SameDatabaseCapturePublisher : public CapturePublisher, private pg::BatchWriter<Captured> {
 public:
  SameDatabaseCapturePublisher(runtime::Loop& loop, pg::Link& link, publish::EventWriter& writer,
                               OutboxMetrics series, DrainLimits limits);
  runtime::Task<void> publish(const std::vector<Captured>& batch) override;

 private:
  runtime::Task<void> write(Items messages, pg::CommitAttempt attempt) override;
  runtime::Task<void> reject(const Captured& message, const pg::Error& error) override;
  runtime::Task<pg::Repair> repair(Items messages, const pg::Error& error) override;
  void give_up(Items messages, const pg::Error& error, pg::CommitAttempt attempt) override;

  publish::EventWriter& writer_;
  OutboxMetrics series_;
  pg::BatchCommit<Captured> commit_;
};

// In another database: published under their IDs, so that a repeated message is the same event. Only rejected
// messages are written there.
class OtherDatabaseCapturePublisher : public CapturePublisher {
 public:
  OtherDatabaseCapturePublisher(pg::Link& link, Sink& sink, OutboxMetrics series, DrainLimits limits);
  runtime::Task<void> publish(const std::vector<Captured>& batch) override;

 private:
  Sink& sink_;
  OutboxMetrics series_;
};

}  // namespace postrider::outbox
