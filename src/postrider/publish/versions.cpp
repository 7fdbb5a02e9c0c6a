#include "postrider/publish/versions.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>

#include "postrider/model/event_type.hpp"
#include "postrider/publish/statements.hpp"

namespace postrider::publish {

namespace {

using Text = std::string_view;
using OptionalText = std::optional<std::string_view>;

// The arrays $12 to $16.
class VersionColumns {
 public:
  void add(const Draft& draft) {
    add_row(draft, *draft.event.version, *draft.content);
    for (size_t i = 0; i < draft.other_contents.size(); ++i)
      add_row(draft, draft.event.other_versions[i].name, *draft.other_contents[i]);
  }
  void append_to(pg::Params& params) const {
    params.add(events_).add(ranks_).add(ids_).add(names_).add(bodies_);
  }

 private:
  void add_row(const Draft& draft, Text name, const model::EventContent& content) {
    const bool is_next = !events_.empty() && events_.back() == draft.id().uuid;
    ranks_.push_back(is_next ? ranks_.back() + 1 : 1);
    events_.push_back(draft.id().uuid);
    ids_.push_back(content.id.uuid);
    names_.push_back(name);
    bodies_.push_back(content.body);
  }

  std::vector<base::Uuid> events_, ids_;
  std::vector<int32_t> ranks_;
  std::vector<Text> names_, bodies_;
};

std::shared_ptr<const model::EventContent> content_of(const Draft& draft, const base::Uuid& row) {
  for (const auto& content : draft.other_contents)
    if (content->id.uuid == row) return content;
  return draft.content;
}

}  // namespace

pg::Params publish_versions_params(const Drafts& drafts, const CommitSettings& settings) {
  std::vector<base::Uuid> ids, pattern_events;
  std::vector<Text> tenants, types;
  std::vector<int32_t> data_bytes;
  std::vector<OptionalText> public_ids, subjects, traceparents;
  std::vector<base::Timestamp> shown_at;
  std::vector<std::string> patterns;
  VersionColumns versions;
  for (const Draft* draft : drafts) {
    const NewEvent& event = draft->event;
    const std::string& traceparent = draft->content->traceparent;
    ids.push_back(draft->id().uuid);
    tenants.push_back(event.tenant_id);
    types.push_back(event.type);
    data_bytes.push_back(static_cast<int32_t>(event.largest_data_bytes()));
    public_ids.push_back(event.id);
    subjects.push_back(event.subject);
    traceparents.push_back(traceparent.empty() ? OptionalText() : OptionalText(traceparent));
    shown_at.push_back(draft->shown_at);
    versions.add(*draft);
    for (auto& pattern : model::patterns_matching(event.type)) {
      pattern_events.push_back(draft->id().uuid);
      patterns.push_back(std::move(pattern));
    }
  }
  const auto range = delivery_range_of(drafts);
  pg::Params params;
  params.add(settings.node_id.uuid).add(range.first.uuid).add(range.last.uuid);
  params.add(ids).add(tenants).add(types).add(data_bytes).add(public_ids).add(subjects).add(traceparents);
  params.add(shown_at);
  versions.append_to(params);
  params.add(pattern_events).add(patterns).add(settings.now);
  params.add(int32_t{settings.data_bytes_max}).add(int32_t{settings.wide_endpoints});
  return params;
}

void read_versions_published(const pg::Rows& rows, const Drafts& drafts, const CommitSettings& settings,
                             Commit& commit) {
  enum Column : size_t {
    event_id,
    fate,
    wide_deliveries,
    publish_rate,
    id,
    endpoint_id,
    bucket,
    position,
    version_id
  };
  struct Result {
    std::string_view fate;
    int64_t deliveries = 0;
  };
  std::unordered_map<base::Uuid, Draft*> by_id;
  for (Draft* draft : drafts) by_id.emplace(draft->id().uuid, draft);
  std::unordered_map<const Draft*, Result> results;
  for (size_t row = 0; row < rows.size(); ++row) {
    const auto found = by_id.find(rows.get<base::Uuid>(row, event_id));
    if (found == by_id.end()) throw unreadable_answer();
    Draft* draft = found->second;
    Result& result = results[draft];
    result.fate = rows.get<std::string_view>(row, fate);
    if (const auto wide = rows.get<std::optional<int64_t>>(row, wide_deliveries)) result.deliveries = *wide;
    draft->is_tenant_known = result.fate != "unknown_tenant";
    draft->publish_rate_per_second = rows.get<std::optional<double>>(row, publish_rate);
    if (rows.is_null(row, id)) continue;
    ++result.deliveries;
    ++draft->rows;
    model::CommittedDelivery delivery;
    delivery.id = {rows.get<base::Uuid>(row, id)};
    delivery.endpoint_id = {rows.get<base::Uuid>(row, endpoint_id)};
    delivery.tenant_id = draft->event.tenant_id;
    delivery.bucket = rows.get<int32_t>(row, bucket);
    delivery.position = rows.get<int64_t>(row, position);
    delivery.due_at = delivery.created_at = settings.now;
    delivery.event = content_of(*draft, rows.get<base::Uuid>(row, version_id));
    commit.deliveries.push_back(std::move(delivery));
  }
  for (Draft* draft : drafts) {
    const Result& result = results[draft];
    commit.has_wide |= result.fate == "wide";
    if (result.fate == "queued" || result.fate == "wide")
      commit.answers.push_back({draft, draft->published(result.deliveries)});
    else
      commit.answers.push_back({draft, refusal(result.fate)});
  }
}

}  // namespace postrider::publish
