#include "postrider/publish/statements.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>

#include "postrider/model/event_type.hpp"

namespace postrider::publish {

namespace {

using Text = std::string_view;
using OptionalText = std::optional<std::string_view>;

// The arrays $4 to $11 of publish: what the batch's events have in common is said once.
class Routes {
 public:
  int32_t add(const NewEvent& event) {
    const OptionalText version = event.version;
    const auto [at, is_new] =
        numbers_.try_emplace(std::tuple(Text(event.tenant_id), Text(event.type), version), count());
    if (!is_new) return at->second;
    for (auto& pattern : model::patterns_matching(event.type)) {
      pattern_routes_.push_back(count());
      pattern_tenants_.push_back(event.tenant_id);
      patterns_.push_back(std::move(pattern));
      pattern_versions_.push_back(version);
    }
    routes_.push_back(count());
    tenants_.push_back(event.tenant_id);
    types_.push_back(event.type);
    versions_.push_back(version);
    return at->second;
  }

  void append_to(pg::Params& params) const {
    params.add(routes_).add(tenants_).add(types_).add(versions_);
    params.add(pattern_routes_).add(pattern_tenants_).add(patterns_).add(pattern_versions_);
  }

 private:
  int32_t count() const { return static_cast<int32_t>(routes_.size()); }

  std::map<std::tuple<Text, Text, OptionalText>, int32_t> numbers_;
  std::vector<int32_t> routes_, pattern_routes_;
  std::vector<Text> tenants_, types_, pattern_tenants_;
  std::vector<std::string> patterns_;
  std::vector<OptionalText> versions_, pattern_versions_;
};

OptionalText unless_empty(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return text;
}

template <class Get>
auto column(const KeyRows& keys, Get get) {
  std::vector<decltype(get(keys.front()))> values;
  values.reserve(keys.size());
  for (const auto& key : keys) values.push_back(get(key));
  return values;
}

pg::Params key_columns(const KeyRows& keys) {
  pg::Params params;
  params.add(column(keys, [](const KeyRow& key) { return key.tenant_id; }));
  params.add(column(keys, [](const KeyRow& key) { return key.kind; }));
  params.add(column(keys, [](const KeyRow& key) { return key.key; }));
  return params;
}

}  // namespace

pg::Error unreadable_answer() {
  return pg::Error(pg::Kind::unknown, "the database's answer to a publish cannot be read");
}

PublishAnswer refusal(std::string_view fate) {
  if (fate == "unknown_tenant") return Refused{Refused::Reason::unknown_tenant, "there is no such tenant"};
  if (fate == "too_large")
    return Refused{Refused::Reason::too_large, "the data is larger than this tenant's limit"};
  throw unreadable_answer();
}

pg::Params publish_params(const Drafts& drafts, const CommitSettings& settings) {
  Routes routes;
  std::vector<base::Uuid> ids;
  std::vector<int32_t> event_routes, data_bytes;
  std::vector<OptionalText> public_ids, subjects, traceparents;
  std::vector<Text> bodies;
  std::vector<base::Timestamp> shown_at;
  size_t bytes = 0;
  for (const Draft* draft : drafts) {
    ids.push_back(draft->id().uuid);
    event_routes.push_back(routes.add(draft->event));
    data_bytes.push_back(static_cast<int32_t>(draft->event.data.size()));
    public_ids.push_back(draft->event.id);
    subjects.push_back(draft->event.subject);
    traceparents.push_back(unless_empty(draft->content->traceparent));
    bodies.push_back(draft->content->body);
    shown_at.push_back(draft->shown_at);
    bytes += draft->content->body.size();
  }
  constexpr size_t kRowBytes = 400;  // everything but the body, roughly
  pg::Params params;
  params.reserve(bytes + drafts.size() * kRowBytes);
  const auto range = delivery_range_of(drafts);
  params.add(settings.node_id.uuid).add(range.first.uuid).add(range.last.uuid);
  routes.append_to(params);
  params.add(ids).add(event_routes).add(data_bytes).add(public_ids).add(subjects).add(traceparents);
  params.add(bodies).add(shown_at).add(settings.now);
  params.add(int32_t{settings.data_bytes_max}).add(int32_t{settings.wide_endpoints});
  return params;
}

void read_published(const pg::Rows& rows, const Drafts& drafts, const CommitSettings& settings,
                    KnownRoutes& routes, Commit& commit) {
  enum Column : size_t {
    event_id,
    fate,
    wide_deliveries,
    publish_rate,
    id,
    endpoint_id,
    bucket,
    position,
    revision,
    data_bytes_max
  };
  struct Result {
    Draft* draft;
    std::string_view fate;
    int64_t deliveries = 0;
    std::optional<int64_t> revision;
    Route route;
  };
  std::unordered_map<base::Uuid, Result> results;
  results.reserve(drafts.size());
  for (Draft* draft : drafts) results.emplace(draft->id().uuid, Result{draft, {}, 0, {}, {}});
  commit.deliveries.reserve(commit.deliveries.size() + rows.size());
  for (size_t row = 0; row < rows.size(); ++row) {
    const auto found = results.find(rows.get<base::Uuid>(row, event_id));
    if (found == results.end()) throw unreadable_answer();
    Result& result = found->second;
    result.fate = rows.get<std::string_view>(row, fate);
    if (const auto wide = rows.get<std::optional<int64_t>>(row, wide_deliveries)) result.deliveries = *wide;
    result.draft->is_tenant_known = result.fate != "unknown_tenant";
    result.draft->publish_rate_per_second = rows.get<std::optional<double>>(row, publish_rate);
    result.revision = rows.get<std::optional<int64_t>>(row, revision);
    if (result.revision) result.route.data_bytes_max = rows.get<int32_t>(row, data_bytes_max);
    if (rows.is_null(row, id)) continue;
    ++result.deliveries;
    ++result.draft->rows;
    model::CommittedDelivery delivery;
    delivery.id = {rows.get<base::Uuid>(row, id)};
    delivery.endpoint_id = {rows.get<base::Uuid>(row, endpoint_id)};
    delivery.tenant_id = result.draft->event.tenant_id;
    delivery.bucket = rows.get<int32_t>(row, bucket);
    delivery.position = rows.get<int64_t>(row, position);
    delivery.due_at = delivery.created_at = settings.now;
    delivery.event = result.draft->content;
    if (result.revision) result.route.targets.push_back({delivery.endpoint_id, delivery.bucket, delivery.id});
    commit.deliveries.push_back(std::move(delivery));
  }
  for (Draft* draft : drafts) {
    Result& result = results.at(draft->id().uuid);
    if (result.fate.empty()) throw unreadable_answer();
    if (result.fate == "queued" && result.revision) {
      result.route.revision = *result.revision;
      result.route.publish_rate_per_second = draft->publish_rate_per_second;
      routes.remember(draft->event, std::move(result.route));
    }
    commit.has_wide |= result.fate == "wide";
    if (result.fate == "queued" || result.fate == "wide")
      commit.answers.push_back({draft, draft->published(result.deliveries)});
    else
      commit.answers.push_back({draft, refusal(result.fate)});
  }
}

pg::Params recall_params(const Drafts& drafts) {
  std::vector<base::Uuid> ids, pattern_events;
  std::vector<Text> tenants;
  std::vector<std::string> patterns;
  std::vector<OptionalText> versions;
  for (const Draft* draft : drafts) {
    ids.push_back(draft->id().uuid);
    for (auto& pattern : model::patterns_matching(draft->event.type)) {
      pattern_events.push_back(draft->id().uuid);
      tenants.push_back(draft->event.tenant_id);
      patterns.push_back(std::move(pattern));
      versions.push_back(draft->event.version);
      for (const auto& other : draft->event.other_versions) {
        pattern_events.push_back(draft->id().uuid);
        tenants.push_back(draft->event.tenant_id);
        patterns.push_back(patterns.back());
        versions.push_back(other.name);
      }
    }
  }
  // Ids that the outbox or a sender has given are in no order.
  const auto [first, last] = std::minmax_element(ids.begin(), ids.end());
  return pg::Params(ids, *first, *last, pattern_events, tenants, patterns, versions);
}

KeyRows key_rows(const Drafts& drafts) {
  KeyRows keys;
  for (Draft* draft : drafts) {
    const NewEvent& event = draft->event;
    if (event.id) keys.push_back({event.tenant_id, "id", *event.id, draft, false});
    if (event.idempotency_key) keys.push_back({event.tenant_id, "key", *event.idempotency_key, draft, false});
  }
  std::sort(keys.begin(), keys.end(), [](const KeyRow& a, const KeyRow& b) {
    return std::tie(a.tenant_id, a.kind, a.key) < std::tie(b.tenant_id, b.kind, b.key);
  });
  return keys;
}

pg::Params take_keys_params(const KeyRows& keys) {
  pg::Params params = key_columns(keys);
  params.add(column(keys, [](const KeyRow& key) { return key.draft->id().uuid; }));
  params.add(column(keys, [](const KeyRow& key) { return pg::Bytes{key.draft->request_hash.view()}; }));
  return params;
}

pg::Params read_keys_params(const KeyRows& keys) {
  return key_columns(keys);
}

pg::Params release_keys_params(const KeyRows& keys) {
  pg::Params params = key_columns(keys);
  params.add(column(keys, [](const KeyRow& key) { return key.draft->id().uuid; }));
  return params;
}

pg::Params keep_answers_params(const KeyRows& keys, const std::vector<std::string_view>& answers) {
  pg::Params params = key_columns(keys);
  params.add(answers);
  return params;
}

}  // namespace postrider::publish
