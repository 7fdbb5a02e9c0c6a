#include "postrider/publish/fanout_plan.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <ranges>
#include <unordered_set>
#include <utility>

#include "postrider/publish/commit.hpp"

namespace postrider::publish {

size_t FanoutPlanCache::Hash::operator()(const KeyView& key) const {
  const std::hash<std::string_view> hash;
  constexpr size_t kSpread = 0x9E3779B97F4A7C15;  // so that equal parts in different places do not cancel out
  size_t mixed = hash(key.tenant_id);
  mixed = mixed * kSpread + hash(key.type);
  if (key.version) mixed = mixed * kSpread + hash(*key.version);
  return mixed;
}

const FanoutPlan* FanoutPlanCache::find(const NewEvent& event) const {
  const auto plan = plans_.find(KeyView(event));
  if (plan == plans_.end()) return nullptr;
  const auto latest = revisions_.find(event.tenant_id);
  if (latest == revisions_.end() || latest->second != plan->second.revision) return nullptr;
  return &plan->second;
}

void FanoutPlanCache::follow(uint64_t connection) {
  if (std::exchange(connection_, connection) != connection) clear();
}

void FanoutPlanCache::clear() {
  plans_.clear();
  revisions_.clear();
  targets_ = 0;
}

void FanoutPlanCache::remember(const NewEvent& event, FanoutPlan plan) {
  // When it is full it is cleared: plans in use are cached again with the next events.
  if (targets_ > targets_max_) clear();
  revisions_.insert_or_assign(event.tenant_id, plan.revision);
  FanoutPlan& kept = plans_[Key{event.tenant_id, event.type, event.version}];
  targets_ += 1 + plan.targets.size() - kept.targets.size();
  kept = std::move(plan);
}

bool PlannedEvents::add(PendingEvent* pending, const FanoutPlanCache& cache) {
  const FanoutPlan* plan = cache.find(pending->event);
  if (plan == nullptr || static_cast<int32_t>(pending->event.data.size()) > plan->data_bytes_max)
    return false;
  events_.push_back(pending);
  plans_.push_back(plan);
  return true;
}

namespace {

using Delivery = model::CommittedDelivery;

// The queue rows, in the order in which they are written.
std::vector<Delivery> deliveries_of(const PendingEvents& events, const std::vector<const FanoutPlan*>& plans,
                                    base::Timestamp now) {
  std::vector<Delivery> deliveries;
  deliveries.reserve(events.size());
  for (size_t i = 0; i < events.size(); ++i)
    for (const FanoutPlan::Target& target : plans[i]->targets)
      deliveries.push_back({.id = model::delivery_id_like(target.sample, events[i]->id()),
                            .endpoint_id = target.endpoint,
                            .tenant_id = events[i]->event.tenant_id,
                            .bucket = target.bucket,
                            .position = 0,
                            .due_at = now,
                            .created_at = now,
                            .event = events[i]->content});
  std::sort(deliveries.begin(), deliveries.end(), [](const Delivery& a, const Delivery& b) {
    return std::tie(a.bucket, a.id) < std::tie(b.bucket, b.id);
  });
  return deliveries;
}

}  // namespace

pg::Pending<sql::publish_known> PlannedEvents::add_to(pg::Batch& batch, const CommitSettings& settings) {
  using std::views::transform;
  deliveries_ = deliveries_of(events_, plans_, settings.now);
  constexpr size_t kRowBytes = 300;  // everything but the body, roughly
  size_t bytes = (events_.size() + deliveries_.size()) * kRowBytes;
  std::vector<std::string_view> tenants;
  std::vector<int64_t> revisions;
  std::unordered_set<std::string_view> seen;
  for (size_t i = 0; i < events_.size(); ++i) {
    bytes += events_[i]->content->body.size();
    if (!seen.insert(events_[i]->event.tenant_id).second) continue;
    tenants.push_back(events_[i]->event.tenant_id);
    revisions.push_back(plans_[i]->revision);
  }
  std::vector<int32_t> buckets;
  for (const Delivery& delivery : deliveries_)  // sorted
    if (buckets.empty() || buckets.back() != delivery.bucket) buckets.push_back(delivery.bucket);
  const auto range = delivery_range_of(events_);
  return add_large(
      batch,
      sql::publish_known{
          .tenants = tenants,
          .revisions = revisions,
          .event_ids = transform(events_, column::id),
          .event_tenants = transform(events_, column::tenant),
          .types = transform(events_, column::type),
          .versions = transform(events_, column::version),
          .public_ids = transform(events_, column::public_id),
          .subjects = transform(events_, column::subject),
          .traceparents = transform(events_, column::traceparent),
          .bodies = transform(events_, column::body),
          .shown_at = transform(events_, column::shown_at),
          .created_at = settings.now,
          .queue_buckets = transform(deliveries_, [](const Delivery& row) { return int32_t{row.bucket}; }),
          .queue_ids = transform(deliveries_, [](const Delivery& row) { return row.id.uuid; }),
          .queue_events = transform(deliveries_, [](const Delivery& row) { return row.event->id.uuid; }),
          .queue_endpoints = transform(deliveries_, [](const Delivery& row) { return row.endpoint_id.uuid; }),
          .queue_tenants =
              transform(deliveries_, [](const Delivery& row) { return std::string_view(row.tenant_id); }),
          .node = settings.node_id.uuid,
          .first_id = range.first.uuid,
          .last_id = range.last.uuid,
          .buckets = buckets},
      bytes);
}

void PlannedEvents::read(const pg::RowsOf<sql::publish_known>& rows, FanoutPlanCache& cache, Commit& commit) {
  if (!rows.front().is_current) {
    for (PendingEvent* pending : events_) {
      cache.forget(pending->event.tenant_id);
      commit.stale.push_back(pending);
    }
    return;
  }
  for (size_t i = 0; i < events_.size(); ++i) {
    PendingEvent* pending = events_[i];
    pending->rows = plans_[i]->targets.size();
    pending->is_tenant_known = true;
    pending->publish_rate_per_second = plans_[i]->publish_rate_per_second;
    commit.results.push_back({pending, pending->published(static_cast<int64_t>(pending->rows))});
  }
  commit.deliveries.insert(commit.deliveries.end(), std::make_move_iterator(deliveries_.begin()),
                           std::make_move_iterator(deliveries_.end()));
}

}  // namespace postrider::publish
