// The body of a publish request: one event, or an array of them. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/base/result.hpp"
#include "postrider/publish/new_event.hpp"

namespace postrider::publish {

struct FieldError {
  std::string pointer;  // RFC 6901, into the request's body
  std::string detail;
};

// The reason why a body, or one of its events, is rejected.
struct BadRequest {
  int status =
      422;  // 400: not JSON at all; 422: JSON, but not an event; 409: an event of the reserved tenant
  std::string detail;
  std::vector<FieldError> errors;
};

using ParsedEvent = base::Result<NewEvent, BadRequest>;

// `{type, data, id?, version?, occurred_at?, subject?}`; a null counts as absent except for data, which may
// be any JSON value. In place of data there may be `versions`, an object of a name and data for each;
// `version` then names the default, without it the greatest name is. The event's data points into `body`.
// publish() checks the size of the data.
ParsedEvent parse_event(std::string_view body, model::TenantId tenant_id);

// Why an event cannot have these versions.
struct VersionsError {
  std::string_view field;  // "versions" or "version"
  std::string detail;
};

// Reads an object of a name and data for each version into the event: `version` and `data` become those of
// the default, the others follow with the greatest name first. They point into the text.
std::optional<VersionsError> read_versions(std::string_view versions, NewEvent& event);

// An array of the same with `tenant_id`. One bad event does not harm the others, unless the text is not JSON.
base::Result<std::vector<ParsedEvent>, BadRequest> parse_batch(std::string_view body, size_t events_max);

}  // namespace postrider::publish
