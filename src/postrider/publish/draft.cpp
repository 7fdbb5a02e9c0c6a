#include "postrider/publish/draft.hpp"

#include "postrider/publish/envelope.hpp"

namespace postrider::publish {

Published Draft::published(int64_t deliveries, bool is_repeat) const {
  return {publish_answer(event, content->public_id, shown_at_text, deliveries), is_repeat};
}

void prepare(Draft& draft, model::IdSource& ids) {
  draft.content = std::make_shared<model::EventContent>();
  auto& content = *draft.content;
  content.id = draft.event.given_id ? *draft.event.given_id : model::EventId{ids.next()};
  content.public_id = draft.event.id ? *draft.event.id : content.id.public_id();
  content.traceparent = draft.event.traceparent;
  draft.shown_at = draft.event.written_at ? *draft.event.written_at : ids.now();
  if (draft.event.occurred_at) draft.shown_at = *draft.event.occurred_at;
  draft.shown_at_text = base::to_rfc3339(draft.shown_at);
  content.body = envelope(draft.event, content.public_id, draft.shown_at_text);
  for (size_t i = 0; i < draft.event.other_versions.size(); ++i) {
    auto other = std::make_shared<model::EventContent>(content);
    other->id = model::version_id(content.id, static_cast<int>(i) + 1);
    other->body =
        envelope(draft.event, draft.event.other_versions[i], content.public_id, draft.shown_at_text);
    draft.other_contents.push_back(std::move(other));
  }
  if (draft.event.has_key()) draft.request_hash = request_hash(draft.event);
}

}  // namespace postrider::publish
