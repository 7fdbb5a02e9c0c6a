#include "postrider/outbox/captured.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <charconv>

#include "postrider/crypto/digest.hpp"

namespace postrider::outbox {

namespace {

constexpr size_t kProofBytes = 32;
constexpr size_t kFields = 10;

bool is_proven(std::string_view proof, std::string_view message, std::string_view key) {
  std::string inner(key);
  inner.append(message);
  std::string outer(key);
  outer.append(crypto::sha256(inner).view());
  return crypto::constant_time_equal(crypto::sha256(outer).view(), proof);
}

using simdjson::dom::element;

bool read(const element& from, int64_t& to) {
  return from.get(to) == simdjson::SUCCESS;
}
bool read(const element& from, std::string& to) {
  std::string_view text;
  if (from.get(text) != simdjson::SUCCESS) return false;
  to = text;
  return true;
}
bool read(const element& from, base::Timestamp& to) {
  int64_t microseconds = 0;
  if (!read(from, microseconds)) return false;
  to = base::Timestamp(base::Microseconds(microseconds));
  return true;
}
template <class T>
bool read(const element& from, std::optional<T>& to) {
  if (from.is_null()) return true;
  return read(from, to.emplace());
}

bool read_head(std::string_view text, OutboxRow& row) {
  thread_local simdjson::dom::parser parser;
  const simdjson::padded_string padded(text);
  simdjson::dom::array fields;
  if (parser.parse(padded).get(fields) != simdjson::SUCCESS || fields.size() != kFields) return false;
  std::string event_id;
  std::optional<std::string> traceparent;
  std::string tenant;
  base::Timestamp written_at;
  publish::NewEvent& event = row.event;
  if (!read(fields.at(0).value(), row.id) || !read(fields.at(1).value(), event_id) ||
      !read(fields.at(2).value(), tenant) || !read(fields.at(3).value(), event.type) ||
      !read(fields.at(4).value(), event.id) || !read(fields.at(5).value(), event.version) ||
      !read(fields.at(6).value(), event.occurred_at) || !read(fields.at(7).value(), event.subject) ||
      !read(fields.at(8).value(), traceparent) || !read(fields.at(9).value(), written_at))
    return false;
  const auto uuid = base::Uuid::from_hex(event_id);
  if (!uuid) return false;
  event.tenant_id = tenant;
  event.given_id = model::EventId{*uuid};
  event.written_at = written_at;
  event.traceparent = traceparent.value_or("");
  row.has_own_id = event.id.has_value();
  return true;
}

}  // namespace

std::string_view Captured::data() const {
  const std::string_view all(bytes);
  return all.substr(all.find('\n') + 1);
}

publish::NewEvent Captured::event() const {
  publish::NewEvent event = row.event;
  event.data = data();
  return event;
}

std::optional<Captured> read_message(std::string_view content, std::string_view key) {
  if (content.size() <= kProofBytes) return std::nullopt;
  const std::string_view message = content.substr(kProofBytes);
  if (!is_proven(content.substr(0, kProofBytes), message, key)) return std::nullopt;
  const size_t end = message.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  Captured captured;
  if (!read_head(message.substr(0, end), captured.row)) return std::nullopt;
  captured.bytes = message;
  return captured;
}

std::string to_text(pg::Lsn lsn) {
  const auto value = static_cast<uint64_t>(lsn);
  return fmt::format("{:X}/{:X}", value >> 32, value & 0xffffffff);
}

std::optional<pg::Lsn> parse_lsn(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  uint64_t high = 0, low = 0;
  const auto read = [](std::string_view part, uint64_t& into) {
    const auto done = std::from_chars(part.data(), part.data() + part.size(), into, 16);
    return done.ec == std::errc() && done.ptr == part.data() + part.size() && into <= 0xffffffff;
  };
  if (!read(text.substr(0, slash), high) || !read(text.substr(slash + 1), low)) return std::nullopt;
  return pg::Lsn{high << 32 | low};
}

}  // namespace postrider::outbox
