// An event as a publisher gave it, not yet accepted.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/base/time.hpp"
#include "postrider/crypto/digest.hpp"
#include "postrider/model/event_rules.hpp"
#include "postrider/model/event_type.hpp"
#include "postrider/model/ids.hpp"

namespace postrider::publish {

// One more version of the same event.
struct EventVersion {
  std::string name;
  std::string_view data;  // as NewEvent::data
};

struct NewEvent {
  model::TenantId tenant_id;
  std::string type;
  std::string_view data;  // the exact JSON text; must live until publish() returns
  std::optional<std::string> id;
  std::optional<std::string> version;
  // Published in several versions at once: the others, in the order in which they are preferred. `version`
  // and `data` are then those of the default.
  std::vector<EventVersion> other_versions;
  std::optional<base::Timestamp> occurred_at;
  std::optional<std::string> subject;
  std::string traceparent;                     // empty: none
  std::optional<std::string> idempotency_key;  // at most kIdempotencyKeyBytesMax
  // Of an event that the outbox has kept since its own transaction: its id and when it was written.
  std::optional<model::EventId> given_id;
  std::optional<base::Timestamp> written_at;

  bool has_key() const { return id || idempotency_key; }
  size_t data_bytes() const;          // of all versions
  size_t largest_data_bytes() const;  // of one
};

constexpr size_t kIdempotencyKeyBytesMax = 255;
constexpr size_t kVersionBytesMax = model::kVersionMax;
constexpr size_t kVersionsMax = 10;  // of one event

// Two requests with the same key are the same request when this is equal. Covers what the publisher said
// about the event, not the idempotency key or the trace.
crypto::Digest256 request_hash(const NewEvent& event);

// UTF-8, 1 to kIdempotencyKeyBytesMax bytes, no NUL.
bool is_idempotency_key(std::string_view text);
// Anything that is not in this form is not passed on.
using model::is_traceparent;

// The errors of model::errors_of(), and those in the event's key and its other versions. Publisher and
// EventWriter reject an event that has any, so that no path can forget the check. Whether data is JSON is
// known if it was cut out of a document; otherwise call trim_data().
std::vector<model::EventError> errors_of(const NewEvent& event);

// Removes white space around the data, which is not part of it. Returns why the data cannot be published: it
// is not JSON, or nested too deep.
std::optional<std::string> trim_data(NewEvent& event);

}  // namespace postrider::publish
