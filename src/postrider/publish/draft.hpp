// An event on its way through one publish batch. Internal to publish/.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "postrider/base/time.hpp"
#include "postrider/model/hand_over.hpp"
#include "postrider/publish/publisher.hpp"

namespace postrider::publish {

struct Draft {
  NewEvent event;
  // Fixed when the batch is formed, and kept over every repetition.
  std::shared_ptr<model::EventContent> content;
  std::vector<std::shared_ptr<model::EventContent>> other_contents;  // of event.other_versions
  base::Timestamp shown_at{};  // created_at as shown: occurred_at if given
  std::string shown_at_text;
  crypto::Digest256 request_hash;  // only when the event has a key

  std::optional<PublishAnswer> answer;
  // Learned when it was written.
  size_t rows = 0;  // in the queue, for it
  bool is_tenant_known = false;
  std::optional<double> publish_rate_per_second;

  model::EventId id() const { return content->id; }
  Published published(int64_t deliveries, bool is_repeat = false) const;
};

// Gives the event its id, its time and its body.
void prepare(Draft& draft, model::IdSource& ids);

// Never empty where a function takes it.
using Drafts = std::vector<Draft*>;

}  // namespace postrider::publish
