// Events with keys: an event ID that the publisher chose, or an Idempotency-Key. A key belongs to the first
// event that takes it. A repetition gets the response of that event, and a different event with the same key
// is rejected. Internal to publish/.
#pragma once

#include <vector>

#include "postrider/publish/commit.hpp"
#include "postrider/publish/fanout_plan.hpp"

namespace postrider::publish {

// The same key twice in one batch: the first event goes to the database, the others follow its result. Pure.
struct Follower {
  PendingEvent* pending;
  const PendingEvent* leader;
};

struct FollowerSplit {
  PendingEvents leaders;  // no key twice; never empty
  std::vector<Follower> followers;
};

FollowerSplit split_followers(const PendingEvents& events);

// Call it after the leaders were committed. Returns the events that have no result yet: the leader was
// rejected and its key is free again, or the leader has none itself.
PendingEvents resolve_followers(const std::vector<Follower>& followers);

// Writes a batch in which no key occurs twice. The caller commits the transaction.
runtime::Task<Commit> write_keyed(pg::Transaction& transaction, FanoutPlanCache& plans, PendingEvents events,
                                  CommitSettings settings);

}  // namespace postrider::publish
