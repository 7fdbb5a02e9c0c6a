// Publishes within the caller's transaction, so that an outbox row is removed if, and only if, its event is
// published. Writes the same as Publisher.
//
// One loop; one write() at a time.
#pragma once

#include <memory>
#include <vector>

#include "postrider/publish/publisher.hpp"

namespace postrider::publish {

struct EventWriterOptions {
  model::NodeId node_id{};
  bool create_tenants = false;
  int data_bytes_max = 256 << 10;
  int wide_endpoints = 2'000;
};

class EventWriter {
 public:
  EventWriter(pg::Link& link, model::IdSource& ids, model::Handoff& handoff,
              const telemetry::Metrics& metrics, EventWriterOptions options);
  ~EventWriter();  // stop() was awaited, or unknown() was never called
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  // As Publisher's.
  void on_committed(base::UniqueFunction<void(const std::vector<int>& buckets)> callback);
  void on_wide(base::UniqueFunction<void()> callback);

  bool is_ready() const;  // IDs can be made

  // One result per event, in order; a rejected event is not written, the others are. Throws pg::Error, and
  // then the transaction is lost. The events' data must live until it returns. Missing tenants are not
  // created in the transaction: it throws Error(retry), and repair() creates them.
  runtime::Task<std::vector<PublishResult>> write(pg::Transaction& transaction, std::vector<NewEvent> events);

  // After the transaction of the last write() was committed. After a rollback there is nothing to call: the
  // next write() forgets the events.
  void committed();
  // Whether the transaction of the last write() was or will be committed is unknown: its connection was lost.
  // The owners are notified to read the table (see UnknownCommits).
  void unknown();
  // Ends these notices. Write nothing afterwards.
  runtime::Task<void> stop();
  // After an error of write() or of the commit: true if something was done about it and the same events can
  // be written again.
  runtime::Task<bool> repair(const pg::Error& error);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace postrider::publish
