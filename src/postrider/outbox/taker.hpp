// How captured messages become events. Each batch is what follows the one before in the order of commits; a
// taker sees to it that a batch which comes again, after a crash in between, makes nothing twice.
#pragma once

#include <string>
#include <vector>

#include "postrider/outbox/captured.hpp"
#include "postrider/outbox/mover.hpp"
#include "postrider/outbox/sink.hpp"
#include "postrider/publish/event_writer.hpp"

namespace postrider::outbox {

class Taker {
 public:
  // The link is the one whose session holds the lease.
  Taker(pg::Link& link, MoveLimits limits) : link_(link), limits_(std::move(limits)) {}
  virtual ~Taker() = default;

  // Publishes them; what is refused becomes a row of the outbox, with its error. Throws pg::Error; a `retry`
  // means that nothing is wrong but the time, and that the same batch may be tried again.
  virtual runtime::Task<void> take(const std::vector<Captured>& batch) = 0;
  // Instead: makes them rows of the outbox, as publish() would have. Needs nothing but the outbox's own
  // database.
  runtime::Task<void> spill(const std::vector<Captured>& batch);

 protected:
  pg::Link& link_;
  MoveLimits limits_;
};

// In postrider's own database: events, refused rows and the position are one transaction, so each message
// becomes its event exactly once.
class SameDatabaseTaker : public Taker {
 public:
  SameDatabaseTaker(pg::Link& link, publish::EventWriter& writer, telemetry::OutboxSeries series,
                    MoveLimits limits);
  runtime::Task<void> take(const std::vector<Captured>& batch) override;

 private:
  struct Range;
  runtime::Task<void> take_range(const std::vector<Captured>& batch, size_t from, size_t to);
  runtime::Task<void> publish_range(const std::vector<Captured>& batch, size_t from, size_t to);

  publish::EventWriter& writer_;
  telemetry::OutboxSeries series_;
  int repairs_ = 0;
  bool is_unsure_ = false;  // whether the last transaction was committed
};

// In another one: published under their ids, so that the same message again is the same event. Nothing is
// written there but what is refused.
class OtherDatabaseTaker : public Taker {
 public:
  OtherDatabaseTaker(pg::Link& link, Sink& sink, telemetry::OutboxSeries series, MoveLimits limits);
  runtime::Task<void> take(const std::vector<Captured>& batch) override;

 private:
  Sink& sink_;
  telemetry::OutboxSeries series_;
};

}  // namespace postrider::outbox
