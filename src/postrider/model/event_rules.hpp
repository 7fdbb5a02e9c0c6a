// The rules that every new event follows, whichever way it comes in: HTTP, a batch, an outbox, the
// write-ahead log, an inbox or an archive. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/base/time.hpp"

namespace postrider::model {

constexpr size_t kSubjectMax = 255;  // bytes

// An event without its data, which the JSON scanner checks.
struct EventFields {
  std::string_view tenant_id;
  std::string_view type;
  std::optional<std::string_view> id;  // the publisher's own
  std::optional<std::string_view> version;
  std::optional<std::string_view> subject;
  std::optional<std::string_view> traceparent;
  std::optional<base::Timestamp> occurred_at;
  std::optional<base::Timestamp> written_at;  // when an outbox row was written
};

struct EventError {
  std::string_view field;  // as the API names it
  std::string detail;      // "must be …"
};

// Empty: the event may be published. The limits of its tenant are checked when it is written.
std::vector<EventError> errors_of(const EventFields& event);
// Without the rule that only postrider publishes to its own tenant: for events that are brought back.
std::vector<EventError> errors_of_form(const EventFields& event);
// "type must be …; subject must be …", or empty.
std::string to_text(const std::vector<EventError>& errors);

// In the years 1 to 9999, which RFC 3339 can write. Infinity in Postgres is outside.
bool is_writable_time(base::Timestamp time);
// The form of W3C Trace Context version 00.
bool is_traceparent(std::string_view text);

}  // namespace postrider::model
