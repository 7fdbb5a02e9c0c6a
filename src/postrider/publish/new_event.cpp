#include "postrider/publish/new_event.hpp"

#include <simdjson.h>

#include <algorithm>
#include <cstring>

#include "postrider/base/json_scanner.hpp"
#include "postrider/base/text.hpp"

namespace postrider::publish {

namespace {

// Length and bytes, so that no two lists of fields look alike; absent differs from empty.
void append_field(std::string& out, const std::optional<std::string_view>& field) {
  const uint64_t length = field ? field->size() : UINT64_MAX;
  char bytes[sizeof length];
  std::memcpy(bytes, &length, sizeof length);
  out.append(bytes, sizeof length);
  if (field) out.append(*field);
}

}  // namespace

size_t NewEvent::data_bytes() const {
  size_t bytes = data.size();
  for (const auto& other : other_versions) bytes += other.data.size();
  return bytes;
}

size_t NewEvent::largest_data_bytes() const {
  size_t bytes = data.size();
  for (const auto& other : other_versions) bytes = std::max(bytes, other.data.size());
  return bytes;
}

crypto::Digest256 request_hash(const NewEvent& event) {
  std::string text;
  text.reserve(event.data.size() + 256);
  append_field(text, event.id);
  append_field(text, event.type);
  append_field(text, event.version);
  append_field(text, event.subject);
  std::optional<std::string> occurred_at;
  if (event.occurred_at) occurred_at = base::to_rfc3339(*event.occurred_at);
  append_field(text, occurred_at);
  append_field(text, event.data);
  for (const auto& other : event.other_versions) {
    append_field(text, other.name);
    append_field(text, other.data);
  }
  return crypto::sha256(text);
}

bool is_idempotency_key(std::string_view text) {
  return !text.empty() && text.size() <= kIdempotencyKeyBytesMax &&
         text.find('\0') == std::string_view::npos && simdjson::validate_utf8(text.data(), text.size());
}

std::vector<model::EventError> errors_of(const NewEvent& event) {
  model::EventFields fields{.tenant_id = event.tenant_id,
                            .type = event.type,
                            .id = event.id,
                            .version = event.version,
                            .subject = event.subject,
                            .traceparent = {},
                            .occurred_at = event.occurred_at,
                            .written_at = event.written_at};
  if (!event.traceparent.empty()) fields.traceparent = event.traceparent;
  auto errors = model::errors_of(fields);
  if (event.idempotency_key && !is_idempotency_key(*event.idempotency_key))
    errors.push_back({"Idempotency-Key", "must be 1 to 255 bytes of UTF-8 without NUL"});
  for (const auto& other : event.other_versions)
    if (other.name.empty() || other.name.size() > kVersionBytesMax || !base::is_storable(other.name))
      errors.push_back({"versions", "each name must have 1 to 64 bytes of UTF-8 without NUL"});
  return errors;
}

std::optional<std::string> trim_data(NewEvent& event) {
  base::JsonScanner json(event.data);
  std::string_view value;
  if (!json.value(value) || !json.finish()) return "data: " + json.error();
  event.data = value;
  return std::nullopt;
}

}  // namespace postrider::publish
