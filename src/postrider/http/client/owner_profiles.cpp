#include "postrider/http/client/owner_profiles.hpp"

#include <algorithm>

namespace postrider::http {

OwnerProfiles::Found OwnerProfiles::of(std::string_view owner, std::span<const Network> networks) {
  Found found;
  const std::string key(owner);
  auto entry = owned_.find(key);
  if (entry != owned_.end() && !std::ranges::equal(entry->second->networks, networks)) {
    found.retired.push_back(entry->second->profile.id());
    owned_.erase(entry);
    entry = owned_.end();
  }
  if (networks.empty()) return found;
  if (entry == owned_.end()) {
    if (owned_.size() >= sweep_at_) drop_unused(found.retired);
    entry = owned_.emplace(key, std::make_shared<const Owned>(guard_, tls_, networks)).first;
  }
  found.profile = std::shared_ptr<const DialProfile>(entry->second, &entry->second->profile);
  return found;
}

// The next sweep is when as many have been added again, so that a sweep costs little per owner.
void OwnerProfiles::drop_unused(std::vector<uint64_t>& retired) {
  std::erase_if(owned_, [&](const auto& entry) {
    const bool is_unused = entry.second.use_count() == 1;
    if (is_unused) retired.push_back(entry.second->profile.id());
    return is_unused;
  });
  sweep_at_ = owned_.size() + kUnusedMax;
}

}  // namespace postrider::http
