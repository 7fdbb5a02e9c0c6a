#include "postrider/registry/key_cache.hpp"

#include <algorithm>
#include <utility>

namespace postrider::registry {

std::optional<Principal> KeyCache::find(const KeyHash& hash, base::SteadyTime now) const {
  const auto entry = entries_.find(std::string(hash.view()));
  if (entry == entries_.end() || now - entry->second.found_at > options_.lifetime) return std::nullopt;
  return entry->second.principal;
}

void KeyCache::keep(const KeyHash& hash, Entry entry) {
  if (entry.generation != generation_) return;
  // A full cache starts afresh: entries live for seconds, so there is nothing worth sorting out.
  if (entries_.size() >= options_.entries_max) entries_.clear();
  entries_.insert_or_assign(std::string(hash.view()), std::move(entry));
}

void KeyCache::apply(std::span<const Change> changes) {
  const auto concerns_keys = [](const Change& change) {
    return change.kind == ChangeKind::key || change.kind == ChangeKind::other;
  };
  if (std::any_of(changes.begin(), changes.end(), concerns_keys)) clear();
}

void KeyCache::clear() {
  ++generation_;
  entries_.clear();
}

}  // namespace postrider::registry
