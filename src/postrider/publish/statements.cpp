#include "postrider/publish/statements.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <ranges>
#include <string>
#include <tuple>
#include <unordered_map>

#include "postrider/model/event_type.hpp"

namespace postrider::publish {

namespace {

using std::views::transform;
using Text = std::string_view;
using OptionalText = std::optional<std::string_view>;

constexpr size_t kRowBytes = 400;  // of an event, everything but the body, roughly

size_t body_bytes(const PendingEvents& events) {
  size_t bytes = 0;
  for (const PendingEvent* pending : events) bytes += pending->content->body.size();
  return bytes;
}

// The combinations of tenant, type and version among the events, each once, and the patterns that match them.
class Plans {
 public:
  int32_t add(const NewEvent& event) {
    const OptionalText version = event.version;
    const auto [at, is_new] =
        known_.try_emplace(std::tuple(Text(event.tenant_id), Text(event.type), version), count());
    if (!is_new) return at->second;
    for (auto& pattern : model::patterns_matching(event.type)) {
      pattern_plans.push_back(count());
      pattern_tenants.push_back(event.tenant_id);
      patterns.push_back(std::move(pattern));
      pattern_versions.push_back(version);
    }
    numbers.push_back(count());
    tenants.push_back(event.tenant_id);
    types.push_back(event.type);
    versions.push_back(version);
    return at->second;
  }

  std::vector<int32_t> numbers, pattern_plans;
  std::vector<Text> tenants, types, pattern_tenants;
  std::vector<std::string> patterns;
  std::vector<OptionalText> versions, pattern_versions;

 private:
  int32_t count() const { return static_cast<int32_t>(numbers.size()); }

  std::map<std::tuple<Text, Text, OptionalText>, int32_t> known_;
};

pg::Error unreadable_result() {
  return pg::Error(pg::Kind::unknown, "the database's result of a publish cannot be read");
}

// Collects the rows of each event: one per delivery, or one without a delivery.
class EventResults {
 public:
  struct Result {
    PendingEvent* pending;
    Text result = {};
    int64_t deliveries = 0;
    std::optional<int64_t> revision = {};
    FanoutPlan plan = {};
  };

  explicit EventResults(const PendingEvents& events) : events_(events) {
    results_.reserve(events.size());
    for (PendingEvent* pending : events) results_.emplace(pending->id().uuid, Result{.pending = pending});
  }

  template <class Row>
  Result& add(const Row& row) {
    const auto found = results_.find(row.event_id);
    if (found == results_.end()) throw unreadable_result();
    Result& result = found->second;
    result.result = row.result;
    if (row.wide_deliveries) result.deliveries = *row.wide_deliveries;
    result.pending->is_tenant_known = row.result != "unknown_tenant";
    result.pending->publish_rate_per_second = row.publish_rate_per_second;
    return result;
  }

  void add_to(Commit& commit, FanoutPlanCache* plans) {
    for (PendingEvent* pending : events_) {
      Result& result = results_.at(pending->id().uuid);
      commit.has_wide |= result.result == "wide";
      commit.results.push_back({pending, of(result)});
      if (plans == nullptr || result.result != "queued" || !result.revision) continue;
      result.plan.revision = *result.revision;
      result.plan.publish_rate_per_second = pending->publish_rate_per_second;
      plans->remember(pending->event, std::move(result.plan));
    }
  }

 private:
  static PublishResult of(const Result& result) {
    if (result.result == "queued" || result.result == "wide")
      return result.pending->published(result.deliveries);
    if (result.result == "unknown_tenant") return unknown_tenant();
    if (result.result == "too_large")
      return Rejected{Rejected::Reason::too_large, "the data is larger than this tenant's limit"};
    throw unreadable_result();
  }

  const PendingEvents& events_;
  std::unordered_map<base::Uuid, Result> results_;
};

template <class Row>
void add_delivery(const Row& row, PendingEvent& pending, std::shared_ptr<const model::EventContent> content,
                  base::Timestamp now, Commit& commit) {
  ++pending.rows;
  commit.deliveries.push_back({.id = {row.delivery_id.value()},
                               .endpoint_id = {row.endpoint_id.value()},
                               .tenant_id = pending.event.tenant_id,
                               .bucket = row.bucket.value(),
                               .position = row.position.value(),
                               .due_at = now,
                               .created_at = now,
                               .event = std::move(content)});
}

}  // namespace

pg::Pending<sql::publish> add_publish(pg::Batch& batch, const PendingEvents& events,
                                      const CommitSettings& settings) {
  Plans plans;
  std::vector<int32_t> event_plans;
  event_plans.reserve(events.size());
  for (const PendingEvent* pending : events) event_plans.push_back(plans.add(pending->event));
  const auto range = delivery_range_of(events);
  return add_large(
      batch,
      sql::publish{
          .data_bytes_max = settings.data_bytes_max,
          .wide_endpoints = settings.wide_endpoints,
          .plan_numbers = plans.numbers,
          .plan_tenants = plans.tenants,
          .plan_types = plans.types,
          .plan_versions = plans.versions,
          .pattern_plans = plans.pattern_plans,
          .pattern_tenants = plans.pattern_tenants,
          .patterns = plans.patterns,
          .pattern_versions = plans.pattern_versions,
          .event_ids = transform(events, column::id),
          .event_plans = event_plans,
          .data_bytes = transform(
              events, [](const PendingEvent* each) { return static_cast<int32_t>(each->event.data.size()); }),
          .public_ids = transform(events, column::public_id),
          .subjects = transform(events, column::subject),
          .traceparents = transform(events, column::traceparent),
          .bodies = transform(events, column::body),
          .shown_at = transform(events, column::shown_at),
          .created_at = settings.now,
          .node = settings.node_id.uuid,
          .first_id = range.first.uuid,
          .last_id = range.last.uuid},
      body_bytes(events) + events.size() * kRowBytes);
}

void read_published(const pg::RowsOf<sql::publish>& rows, const PendingEvents& events,
                    const CommitSettings& settings, FanoutPlanCache& plans, Commit& commit) {
  EventResults results(events);
  commit.deliveries.reserve(commit.deliveries.size() + rows.size());
  for (const auto& row : rows) {
    EventResults::Result& result = results.add(row);
    result.revision = row.revision;
    if (row.revision) result.plan.data_bytes_max = row.data_bytes_max.value();
    if (!row.delivery_id) continue;
    ++result.deliveries;
    add_delivery(row, *result.pending, result.pending->content, settings.now, commit);
    const auto& delivery = commit.deliveries.back();
    if (row.revision) result.plan.targets.push_back({delivery.endpoint_id, delivery.bucket, delivery.id});
  }
  results.add_to(commit, &plans);
}

namespace {

// Each version of the events.
struct VersionColumns {
  void add(const PendingEvent& pending) {
    add_row(pending, 1, *pending.event.version, *pending.content);
    for (size_t i = 0; i < pending.other_contents.size(); ++i)
      add_row(pending, static_cast<int32_t>(i) + 2, pending.event.other_versions[i].name,
              *pending.other_contents[i]);
  }

  std::vector<base::Uuid> events, ids;
  std::vector<int32_t> ranks;
  std::vector<Text> names, bodies;

 private:
  void add_row(const PendingEvent& pending, int32_t rank, Text name, const model::EventContent& content) {
    events.push_back(pending.id().uuid);
    ranks.push_back(rank);
    ids.push_back(content.id.uuid);
    names.push_back(name);
    bodies.push_back(content.body);
  }
};

std::shared_ptr<const model::EventContent> content_of(const PendingEvent& pending, const base::Uuid& row) {
  for (const auto& content : pending.other_contents)
    if (content->id.uuid == row) return content;
  return pending.content;
}

}  // namespace

pg::Pending<sql::publish_versions> add_publish_versions(pg::Batch& batch, const PendingEvents& events,
                                                        const CommitSettings& settings) {
  VersionColumns versions;
  std::vector<base::Uuid> pattern_events;
  std::vector<std::string> patterns;
  for (const PendingEvent* pending : events) {
    versions.add(*pending);
    for (auto& pattern : model::patterns_matching(pending->event.type)) {
      pattern_events.push_back(pending->id().uuid);
      patterns.push_back(std::move(pattern));
    }
  }
  const auto range = delivery_range_of(events);
  return batch.add(sql::publish_versions{
      .data_bytes_max = settings.data_bytes_max,
      .wide_endpoints = settings.wide_endpoints,
      .event_ids = transform(events, column::id),
      .tenants = transform(events, column::tenant),
      .types = transform(events, column::type),
      .data_bytes = transform(
          events,
          [](const PendingEvent* each) { return static_cast<int32_t>(each->event.largest_data_bytes()); }),
      .public_ids = transform(events, column::public_id),
      .subjects = transform(events, column::subject),
      .traceparents = transform(events, column::traceparent),
      .shown_at = transform(events, column::shown_at),
      .version_events = versions.events,
      .version_ranks = versions.ranks,
      .version_ids = versions.ids,
      .version_names = versions.names,
      .version_bodies = versions.bodies,
      .pattern_events = pattern_events,
      .patterns = patterns,
      .created_at = settings.now,
      .node = settings.node_id.uuid,
      .first_id = range.first.uuid,
      .last_id = range.last.uuid});
}

void read_versions_published(const pg::RowsOf<sql::publish_versions>& rows, const PendingEvents& events,
                             const CommitSettings& settings, Commit& commit) {
  EventResults results(events);
  for (const auto& row : rows) {
    EventResults::Result& result = results.add(row);
    if (!row.delivery_id) continue;
    ++result.deliveries;
    add_delivery(row, *result.pending, content_of(*result.pending, row.version_id.value()), settings.now,
                 commit);
  }
  results.add_to(commit, nullptr);
}

pg::Pending<sql::recall> add_recall(pg::Batch& batch, const PendingEvents& events) {
  std::vector<base::Uuid> ids, pattern_events;
  std::vector<Text> tenants;
  std::vector<std::string> patterns;
  std::vector<OptionalText> versions;
  for (const PendingEvent* pending : events) {
    const NewEvent& event = pending->event;
    ids.push_back(pending->id().uuid);
    for (const auto& pattern : model::patterns_matching(event.type)) {
      for (size_t i = 0; i <= event.other_versions.size(); ++i) {
        pattern_events.push_back(pending->id().uuid);
        tenants.push_back(event.tenant_id);
        patterns.push_back(pattern);
        versions.push_back(i == 0 ? OptionalText(event.version) : event.other_versions[i - 1].name);
      }
    }
  }
  // IDs that were given by the outbox or a sender are in no order.
  const auto [first, last] = std::minmax_element(ids.begin(), ids.end());
  return batch.add(sql::recall{.pattern_events = pattern_events,
                               .pattern_tenants = tenants,
                               .patterns = patterns,
                               .pattern_versions = versions,
                               .event_ids = ids,
                               .first_id = *first,
                               .last_id = *last});
}

}  // namespace postrider::publish
