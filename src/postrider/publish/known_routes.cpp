#include "postrider/publish/known_routes.hpp"

#include <functional>
#include <utility>

namespace postrider::publish {

size_t KnownRoutes::Hash::operator()(const KeyView& key) const {
  const std::hash<std::string_view> hash;
  constexpr size_t kSpread = 0x9E3779B97F4A7C15;  // so that equal parts in different places do not cancel out
  size_t mixed = hash(key.tenant_id);
  mixed = mixed * kSpread + hash(key.type);
  if (key.version) mixed = mixed * kSpread + hash(*key.version);
  return mixed;
}

const Route* KnownRoutes::find(const NewEvent& event) const {
  const auto route = routes_.find(KeyView(event));
  if (route == routes_.end()) return nullptr;
  const auto latest = revisions_.find(event.tenant_id);
  if (latest == revisions_.end() || latest->second != route->second.revision) return nullptr;
  return &route->second;
}

void KnownRoutes::follow(uint64_t connection) {
  if (std::exchange(connection_, connection) != connection) clear();
}

void KnownRoutes::clear() {
  routes_.clear();
  revisions_.clear();
  targets_ = 0;
}

void KnownRoutes::remember(const NewEvent& event, Route route) {
  // Bounded by starting over: what is still used comes back with the next event.
  if (targets_ > targets_max_) clear();
  revisions_.insert_or_assign(event.tenant_id, route.revision);
  Route& kept = routes_[Key{event.tenant_id, event.type, event.version}];
  targets_ += 1 + route.targets.size() - kept.targets.size();
  kept = std::move(route);
}

}  // namespace postrider::publish
