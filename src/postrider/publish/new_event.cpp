#include "postrider/publish/new_event.hpp"

#include <simdjson.h>

#include <algorithm>
#include <cstring>

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

bool is_traceparent(std::string_view text) {
  constexpr std::string_view kShape = "00-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx";
  if (text.size() != kShape.size()) return false;
  const auto fits = [](char c, char shape) {
    if (shape != 'x') return c == shape;
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  };
  return std::equal(text.begin(), text.end(), kShape.begin(), fits);
}

}  // namespace postrider::publish
