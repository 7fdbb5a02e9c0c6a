// An event in a publish batch. Internal to publish/.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "postrider/base/time.hpp"
#include "postrider/model/handoff.hpp"
#include "postrider/pg/batch.hpp"
#include "postrider/publish/publisher.hpp"

namespace postrider::publish {

struct PendingEvent {
  NewEvent event;
  // Set when the batch is formed, and kept over every attempt to write it.
  std::shared_ptr<model::EventContent> content;
  std::vector<std::shared_ptr<model::EventContent>> other_contents;  // of event.other_versions
  base::Timestamp shown_at{};  // created_at as shown: occurred_at if given
  std::string shown_at_text;
  crypto::Digest256 request_hash;  // only if the event has a key

  std::optional<PublishResult> result;
  // Read from the tenant's row when the event was written.
  size_t rows = 0;  // in the queue, for it
  bool is_tenant_known = false;
  std::optional<double> publish_rate_per_second;

  model::EventId id() const { return content->id; }
  bool has_versions() const { return !event.other_versions.empty(); }
  Published published(int64_t deliveries, bool is_repeat = false) const;
};

// Gives the event its ID, its time and its body.
void prepare(PendingEvent& pending, model::IdSource& ids);

// Never empty where a function takes it.
using PendingEvents = std::vector<PendingEvent*>;

// All delivery IDs of the events lie in it.
model::DeliveryRange delivery_range_of(const PendingEvents& events);

// Adds a statement with about this many bytes of parameters.
template <pg::Query S>
pg::Pending<S> add_large(pg::Batch& batch, const S& query, size_t bytes) {
  batch.add(S::statement, query.params(bytes));
  return {batch.size() - 1};
}

// The values of an event as the statements take them.
namespace column {
inline base::Uuid id(const PendingEvent* pending) {
  return pending->id().uuid;
}
inline std::string_view tenant(const PendingEvent* pending) {
  return pending->event.tenant_id;
}
inline std::string_view type(const PendingEvent* pending) {
  return pending->event.type;
}
inline std::optional<std::string_view> version(const PendingEvent* pending) {
  return pending->event.version;
}
inline std::optional<std::string_view> public_id(const PendingEvent* pending) {
  return pending->event.id;
}
inline std::optional<std::string_view> subject(const PendingEvent* pending) {
  return pending->event.subject;
}
inline std::optional<std::string_view> traceparent(const PendingEvent* pending) {
  if (pending->content->traceparent.empty()) return std::nullopt;
  return pending->content->traceparent;
}
inline std::string_view body(const PendingEvent* pending) {
  return pending->content->body;
}
inline base::Timestamp shown_at(const PendingEvent* pending) {
  return pending->shown_at;
}
}  // namespace column

}  // namespace postrider::publish
