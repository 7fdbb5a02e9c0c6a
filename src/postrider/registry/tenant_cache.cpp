#include "postrider/registry/tenant_cache.hpp"

#include <utility>

#include "postrider/registry/columns.hpp"
#include "postrider/registry/tenant_cache.sql.hpp"

namespace postrider::registry {

std::optional<TenantLimits> TenantCache::find(const model::TenantId& tenant, base::SteadyTime now) const {
  const auto entry = entries_.find(tenant);
  if (entry == entries_.end() || now - entry->second.found_at > options_.lifetime) return std::nullopt;
  return entry->second.limits;
}

runtime::Task<std::optional<TenantLimits>> TenantCache::load(pg::Link& link, model::TenantId tenant) {
  const uint64_t generation = generation_;
  const base::SteadyTime asked_at = base::BootClock::now();
  const auto rows = co_await link.run(sql::load_tenant_limits{.id = tenant});
  if (rows.empty()) co_return std::nullopt;
  TenantLimits limits;
  limits.status = known(model::parse_tenant_status(rows.front().status));
  limits.publish_rate_per_second = rows.front().publish_rate_per_second;
  limits.payload_bytes_max = rows.front().payload_bytes_max;
  if (generation == generation_) {
    if (entries_.size() >= options_.entries_max) entries_.clear();
    entries_.insert_or_assign(std::move(tenant), Entry{limits, asked_at});
  }
  co_return limits;
}

void TenantCache::apply(std::span<const Change> changes) {
  for (const auto& change : changes) {
    if (change.kind == ChangeKind::other) return clear();
    if (change.kind != ChangeKind::tenant || !change.tenant_id) continue;
    ++generation_;
    entries_.erase(*change.tenant_id);
  }
}

void TenantCache::clear() {
  ++generation_;
  entries_.clear();
}

}  // namespace postrider::registry
