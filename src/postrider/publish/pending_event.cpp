#include "postrider/publish/pending_event.hpp"

#include <algorithm>

#include "postrider/publish/envelope.hpp"

namespace postrider::publish {

Published PendingEvent::published(int64_t deliveries, bool is_repeat) const {
  return {publish_response(event, content->public_id, shown_at_text, deliveries), is_repeat};
}

void prepare(PendingEvent& pending, model::IdSource& ids) {
  const NewEvent& event = pending.event;
  pending.content = std::make_shared<model::EventContent>();
  auto& content = *pending.content;
  content.id = event.given_id ? *event.given_id : model::EventId{ids.next()};
  content.public_id = event.id ? *event.id : content.id.public_id();
  content.traceparent = event.traceparent;
  pending.shown_at = event.written_at ? *event.written_at : ids.now();
  if (event.occurred_at) pending.shown_at = *event.occurred_at;
  pending.shown_at_text = base::to_rfc3339(pending.shown_at);
  content.body = envelope(event, content.public_id, pending.shown_at_text);
  for (size_t i = 0; i < event.other_versions.size(); ++i) {
    auto other = std::make_shared<model::EventContent>(content);
    other->id = model::version_id(content.id, static_cast<int>(i) + 1);
    other->body = envelope(event, event.other_versions[i], content.public_id, pending.shown_at_text);
    pending.other_contents.push_back(std::move(other));
  }
  if (event.has_key()) pending.request_hash = request_hash(event);
}

model::DeliveryRange delivery_range_of(const PendingEvents& events) {
  const auto by_id = [](const PendingEvent* a, const PendingEvent* b) { return a->id() < b->id(); };
  const auto [first, last] = std::minmax_element(events.begin(), events.end(), by_id);
  return model::delivery_range((*first)->id(), (*last)->id());
}

}  // namespace postrider::publish
