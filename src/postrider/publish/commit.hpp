// One attempt to commit a batch of events, and the work after a commit. Internal to publish/. Publisher
// decides what a failure means.
#pragma once

#include <vector>

#include "postrider/base/unique_function.hpp"
#include "postrider/publish/fanout_plan.hpp"
#include "postrider/publish/metrics.hpp"
#include "postrider/publish/pending_event.hpp"

namespace postrider::publish {

struct CommitSettings {
  model::NodeId node_id;  // nil: there is no handoff in memory
  base::Timestamp now{};
  int data_bytes_max = 0;
  int wide_endpoints = 0;
  base::SteadyTime deadline{};  // for the connection to come up
};

struct Commit {
  struct Result {
    PendingEvent* pending;
    PublishResult result;
  };
  std::vector<Result> results;  // in any order
  // Not written, and without a result: their fan-out plan was out of date, or a key of theirs had to be
  // freed.
  PendingEvents stale;
  std::vector<model::CommittedDelivery> deliveries;
  bool has_wide = false;
};

// Events without keys: one round trip. With keys: a transaction that takes the keys first. All events but the
// stale ones are committed or, if it throws pg::Error, none (or, Kind::unknown, perhaps all).
runtime::Task<Commit> commit_events(pg::Link& link, FanoutPlanCache& plans, PendingEvents events,
                                    CommitSettings settings);

// The same after an attempt with an unknown result: events that are in the table were committed by it. Their
// deliveries may be in flight, so they are not touched, and every owner is notified to read the table.
runtime::Task<Commit> commit_again(pg::Link& link, FanoutPlanCache& plans, PendingEvents events,
                                   CommitSettings settings);

// The same within a transaction that the caller commits.
runtime::Task<Commit> write_events(pg::Transaction& transaction, FanoutPlanCache& plans, PendingEvents events,
                                   CommitSettings settings);

// Creates the partitions of the events' days. Only logs a failure: the next attempt finds them created by
// another node, or creates them.
runtime::Task<void> create_partitions(pg::Link& link, const PendingEvents& events);

Rejected unknown_tenant();
bool is_unknown_tenant(const PublishResult& result);
// Creates the events' tenants, unless they exist. Throws pg::Error.
runtime::Task<void> create_tenants(pg::Link& link, const PendingEvents& events);

// The result of the committed transactions of a batch.
struct Announcement {
  std::vector<model::CommittedDelivery> deliveries;
  size_t events = 0;
  bool has_wide = false;

  // Also gives the events their results; stale ones have none yet.
  void add(Commit commit, const PendingEvents& events);
};

// After a commit: passes the deliveries on in memory, wakes other nodes, starts wide fan-out.
class Announcer {
 public:
  Announcer(model::Handoff& handoff, const Metrics& metrics)
      : handoff_(handoff), events_created_(metrics.events_created) {}

  void on_committed(base::UniqueFunction<void(const std::vector<int>& buckets)> callback) {
    on_committed_ = std::move(callback);
  }
  void on_wide(base::UniqueFunction<void()> callback) { on_wide_ = std::move(callback); }

  void announce(Announcement committed);

 private:
  model::Handoff& handoff_;
  telemetry::Counter events_created_;
  base::UniqueFunction<void(const std::vector<int>&)> on_committed_;
  base::UniqueFunction<void()> on_wide_;
};

}  // namespace postrider::publish
