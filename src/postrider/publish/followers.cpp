#include "postrider/publish/followers.hpp"

#include <map>
#include <string_view>
#include <tuple>

namespace postrider::publish {

Split split_followers(const Drafts& drafts) {
  using Key = std::tuple<std::string_view, bool, std::string_view>;
  std::map<Key, const Draft*> owners;
  Split split;
  for (Draft* draft : drafts) {
    const NewEvent& event = draft->event;
    std::vector<Key> keys;
    if (event.id) keys.emplace_back(event.tenant_id, true, *event.id);
    if (event.idempotency_key) keys.emplace_back(event.tenant_id, false, *event.idempotency_key);
    const Draft* leader = nullptr;
    for (const Key& key : keys) {
      const auto owner = owners.find(key);
      if (owner == owners.end()) continue;
      // Of two leaders the one with other content decides.
      if (leader == nullptr || owner->second->request_hash != draft->request_hash) leader = owner->second;
    }
    if (leader != nullptr) {
      split.followers.push_back({draft, leader});
      continue;
    }
    split.leaders.push_back(draft);
    for (const Key& key : keys) owners.emplace(key, draft);
  }
  return split;
}

Drafts answer_followers(const std::vector<Follower>& followers) {
  Drafts left;
  for (const auto& [draft, leader] : followers) {
    if (!leader->answer) {
      left.push_back(draft);
      continue;
    }
    const auto* published = std::get_if<Published>(&*leader->answer);
    const auto* refused = std::get_if<Refused>(&*leader->answer);
    if (draft->request_hash == leader->request_hash) {
      if (published != nullptr)
        draft->answer = Published{published->answer, true};
      else
        draft->answer = *refused;
    } else if (published != nullptr) {
      draft->answer = Refused{Refused::Reason::conflict,
                              "the event ID or Idempotency-Key was already used with different content"};
    } else {
      left.push_back(draft);
    }
  }
  return left;
}

}  // namespace postrider::publish
