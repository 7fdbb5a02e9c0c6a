// Publishes within a transaction of the caller's, so that something else happens with it or not at all: an
// outbox row goes and its event comes. The other way in than Publisher; what is written is the same.
//
// One loop; one at a time.
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
  EventWriter(pg::Link& link, model::IdSource& ids, model::HandOver& hand_over,
              const telemetry::Metrics& metrics, EventWriterOptions options);
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  // As Publisher's.
  void on_committed(base::UniqueFunction<void(const std::vector<int>& buckets)> callback);
  void on_wide(base::UniqueFunction<void()> callback);

  bool is_ready() const;  // ids can be made

  // One answer per event, in order; a refused event is not written, the others are. Throws pg::Error, and
  // then the transaction is lost. The events' data must live until then. Tenants that are to be made are made
  // apart from the transaction, which then has to be tried again: Error(retry).
  runtime::Task<std::vector<PublishAnswer>> write(pg::Transaction& transaction, std::vector<NewEvent> events);

  // How the transaction ended, exactly one after each write() that returned or threw.
  void committed();
  void rolled_back();
  // It may have been committed: every owner is made to look at the table, as soon as there is a database.
  runtime::Task<void> unsure();
  // After an error of write(): true when something was done about it and the same may be tried again.
  runtime::Task<bool> repair(const pg::Error& error);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace postrider::publish
