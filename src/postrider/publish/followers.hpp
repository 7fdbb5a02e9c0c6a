// The same key twice within one batch: the first draft goes to the database, the others follow its answer.
// Internal to publish/. Pure.
#pragma once

#include <vector>

#include "postrider/publish/draft.hpp"

namespace postrider::publish {

struct Follower {
  Draft* draft;
  const Draft* leader;
};

struct Split {
  Drafts leaders;  // no key twice; never empty
  std::vector<Follower> followers;
};

Split split_followers(const Drafts& drafts);

// Once the leaders had their turn. Returns the drafts that have no answer yet: the leader was refused and its
// key is free again, or the leader has none itself.
Drafts answer_followers(const std::vector<Follower>& followers);

}  // namespace postrider::publish
