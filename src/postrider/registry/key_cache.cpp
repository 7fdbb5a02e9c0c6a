#include "postrider/registry/key_cache.hpp"

#include <algorithm>

namespace postrider::registry {

namespace {

// A full map starts afresh: entries live for seconds, so evicting single ones is not worth the bookkeeping.
template <class Map>
void make_room(Map& map, size_t entries_max) {
  if (map.size() >= entries_max) map.clear();
}

}  // namespace

KeyCache::Found KeyCache::find(const KeyHash& hash, base::SteadyTime now) const {
  const std::string bytes(hash.view());
  const auto entry = entries_.find(bytes);
  if (entry != entries_.end() && now < entry->second.ends_at) return {true, entry->second.principal};
  const auto unknown = unknown_.find(bytes);
  if (unknown != unknown_.end() && now < unknown->second) return {true, std::nullopt};
  return {};
}

void KeyCache::keep(const KeyHash& hash, const LookUp& look_up) {
  if (look_up.generation != generation_) return;
  std::string bytes(hash.view());
  if (!look_up.found) {
    entries_.erase(bytes);
    make_room(unknown_, options_.unknown_max);
    unknown_.insert_or_assign(std::move(bytes), look_up.asked_at + options_.unknown_lifetime);
    return;
  }
  unknown_.erase(bytes);
  base::SteadyTime ends_at = look_up.asked_at + options_.lifetime;
  if (const auto left = look_up.found->expires_in)
    ends_at = std::min<base::SteadyTime>(ends_at, look_up.asked_at + *left);
  make_room(entries_, options_.entries_max);
  entries_.insert_or_assign(std::move(bytes), Entry{look_up.found->principal, ends_at});
}

void KeyCache::apply(std::span<const Change> changes) {
  if (std::any_of(changes.begin(), changes.end(), concerns_keys)) clear();
}

void KeyCache::clear() {
  ++generation_;
  entries_.clear();
  unknown_.clear();
}

bool concerns_keys(const Change& change) {
  return change.kind == ChangeKind::key || change.kind == ChangeKind::other;
}

}  // namespace postrider::registry
