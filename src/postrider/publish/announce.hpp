// What follows a commit: deliveries are handed over in memory, other nodes are woken, fan-out tasks started.
// Internal to publish/.
#pragma once

#include <vector>

#include "postrider/base/unique_function.hpp"
#include "postrider/publish/commit.hpp"

namespace postrider::publish {

// What one or more transactions of a batch have committed.
struct Announcement {
  std::vector<model::CommittedDelivery> deliveries;
  size_t events = 0;
  bool has_wide = false;

  // Gives the drafts their answers, too; stale ones have none yet.
  void add(Commit commit, const Drafts& drafts);
};

class Announcer {
 public:
  Announcer(model::HandOver& hand_over, const telemetry::Metrics& metrics)
      : hand_over_(hand_over), events_created_(metrics.events_created) {}

  void on_committed(base::UniqueFunction<void(const std::vector<int>& buckets)> callback) {
    on_committed_ = std::move(callback);
  }
  void on_wide(base::UniqueFunction<void()> callback) { on_wide_ = std::move(callback); }

  void announce(Announcement committed);

 private:
  model::HandOver& hand_over_;
  telemetry::Counter events_created_;
  base::UniqueFunction<void(const std::vector<int>&)> on_committed_;
  base::UniqueFunction<void()> on_wide_;
};

}  // namespace postrider::publish
