// publish_known: its parameters and its answer.
#include <algorithm>
#include <unordered_map>

#include "postrider/publish/statements.hpp"

namespace postrider::publish {

namespace {

template <class Range, class Get>
auto column(const Range& range, Get get) {
  std::vector<decltype(get(range.front()))> values;
  values.reserve(range.size());
  for (const auto& item : range) values.push_back(get(item));
  return values;
}

std::optional<std::string_view> unless_empty(std::string_view text) {
  if (text.empty()) return std::nullopt;
  return text;
}

// Each tenant once, with the revision that its routes are of.
void add_tenants(pg::Params& params, const RoutedDrafts& known) {
  std::vector<std::string_view> tenants;
  std::vector<int64_t> revisions;
  std::unordered_map<std::string_view, bool> seen;
  for (const auto& [draft, route] : known) {
    if (!seen.try_emplace(draft->event.tenant_id, true).second) continue;
    tenants.push_back(draft->event.tenant_id);
    revisions.push_back(route->revision);
  }
  params.add(tenants).add(revisions);
}

void add_events(pg::Params& params, const RoutedDrafts& known) {
  using Optional = std::optional<std::string_view>;
  params.add(column(known, [](const RoutedDraft& k) { return k.draft->id().uuid; }));
  params.add(column(known, [](const RoutedDraft& k) { return std::string_view(k.draft->event.tenant_id); }));
  params.add(column(known, [](const RoutedDraft& k) { return std::string_view(k.draft->event.type); }));
  params.add(column(known, [](const RoutedDraft& k) { return Optional(k.draft->event.version); }));
  params.add(column(known, [](const RoutedDraft& k) { return Optional(k.draft->event.id); }));
  params.add(column(known, [](const RoutedDraft& k) { return Optional(k.draft->event.subject); }));
  params.add(column(known, [](const RoutedDraft& k) { return unless_empty(k.draft->content->traceparent); }));
  params.add(column(known, [](const RoutedDraft& k) { return std::string_view(k.draft->content->body); }));
  params.add(column(known, [](const RoutedDraft& k) { return k.draft->shown_at; }));
}

}  // namespace

std::vector<model::CommittedDelivery> routed_deliveries(const RoutedDrafts& known, base::Timestamp now) {
  std::vector<model::CommittedDelivery> deliveries;
  deliveries.reserve(known.size());
  for (const auto& [draft, route] : known)
    for (const Route::Target& target : route->targets)
      deliveries.push_back({.id = model::delivery_id_like(target.sample, draft->id()),
                            .endpoint_id = target.endpoint,
                            .tenant_id = draft->event.tenant_id,
                            .bucket = target.bucket,
                            .position = 0,
                            .due_at = now,
                            .created_at = now,
                            .event = draft->content});
  std::sort(deliveries.begin(), deliveries.end(),
            [](const auto& a, const auto& b) { return std::tie(a.bucket, a.id) < std::tie(b.bucket, b.id); });
  return deliveries;
}

pg::Params publish_known_params(const RoutedDrafts& known,
                                const std::vector<model::CommittedDelivery>& deliveries,
                                const CommitSettings& settings) {
  using Delivery = model::CommittedDelivery;
  constexpr size_t kRowBytes = 300;  // everything but the body, roughly
  size_t bytes = deliveries.size() * kRowBytes;
  for (const auto& [draft, route] : known) bytes += kRowBytes + draft->content->body.size();
  pg::Params params;
  params.reserve(bytes);
  const auto range = delivery_range_of(column(known, [](const RoutedDraft& k) { return k.draft; }));
  params.add(settings.node_id.uuid).add(range.first.uuid).add(range.last.uuid);
  add_tenants(params, known);
  add_events(params, known);
  std::vector<int> buckets = column(deliveries, [](const Delivery& d) { return d.bucket; });
  params.add(buckets);
  params.add(column(deliveries, [](const Delivery& d) { return d.id.uuid; }));
  params.add(column(deliveries, [](const Delivery& d) { return d.event->id.uuid; }));
  params.add(column(deliveries, [](const Delivery& d) { return d.endpoint_id.uuid; }));
  params.add(column(deliveries, [](const Delivery& d) { return std::string_view(d.tenant_id); }));
  params.add(settings.now);
  buckets.erase(std::unique(buckets.begin(), buckets.end()), buckets.end());
  params.add(buckets);
  return params;
}

void read_known(const pg::Rows& rows, const RoutedDrafts& known,
                std::vector<model::CommittedDelivery> deliveries, KnownRoutes& routes, Commit& commit) {
  if (!rows.get<bool>(0, 0)) {
    for (const auto& [draft, route] : known) {
      routes.forget(draft->event.tenant_id);
      commit.stale.push_back(draft);
    }
    return;
  }
  for (const auto& [draft, route] : known) {
    draft->rows = route->targets.size();
    draft->is_tenant_known = true;
    draft->publish_rate_per_second = route->publish_rate_per_second;
    commit.answers.push_back({draft, draft->published(static_cast<int64_t>(route->targets.size()))});
  }
  commit.deliveries.insert(commit.deliveries.end(), std::make_move_iterator(deliveries.begin()),
                           std::make_move_iterator(deliveries.end()));
}

}  // namespace postrider::publish
