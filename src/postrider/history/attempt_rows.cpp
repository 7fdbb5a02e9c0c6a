#include "postrider/history/attempt_rows.hpp"

#include "postrider/http/client/response_headers.hpp"
#include "postrider/http/retry_after.hpp"
#include "postrider/model/ids.hpp"
#include "postrider/registry/audience.hpp"

namespace postrider::history {

namespace {

// Of attempt.flags.
constexpr int kReused = 1, kResent = 2, kTruncated = 4;

template <class Row>
std::string phases_json(const Row& row) {
  base::JsonObject json;
  json.add("lookup_us", row.lookup_us)
      .add("connect_us", row.connect_us)
      .add("tls_us", row.tls_us)
      .add("send_us", row.send_us)
      .add("first_byte_us", row.first_byte_us)
      .add("total_us", row.total_us);
  return json.text();
}

std::string headers_json(std::string_view stored) {
  base::JsonObject json;
  for (const auto& [name, value] : http::read_headers(stored)) json.add(name, value);
  return json.text();
}

std::optional<int64_t> retry_after_seconds(std::string_view stored, base::Timestamp received_at) {
  for (const auto& [name, value] : http::read_headers(stored))
    if (name == "retry-after") {
      const auto wait = http::parse_retry_after(value, received_at);
      return wait ? std::optional<int64_t>(wait->count()) : std::nullopt;
    }
  return std::nullopt;
}

// Like the preview, the headers may repeat sent data.
template <class Row>
std::string response_json(const Row& row, bool sees_payloads) {
  if (!row.status_code) return "null";
  base::JsonObject json;
  const bool has_headers = row.response_headers.has_value();
  json.raw("headers", has_headers && sees_payloads ? headers_json(*row.response_headers) : "null")
      .add("content_type", row.content_type)
      .add("bytes", row.bytes_received)
      .add("is_truncated", (row.flags & kTruncated) != 0);
  std::optional<int64_t> retry_after;
  if (has_headers)
    retry_after =
        retry_after_seconds(*row.response_headers, row.started_at + std::chrono::microseconds(row.total_us));
  json.add("retry_after_seconds", retry_after);
  return json.text();
}

// Of a row with the timeline_columns of delivery.sql.
template <class Row>
base::JsonObject timeline_json(const Row& row, const registry::Principal& reader) {
  const http::Audience audience = registry::audience_of(reader);
  const std::optional<std::string> error(row.error);
  base::JsonObject json;
  std::optional<int> probe;
  if (row.attempt < 0) probe = -row.attempt;
  json.add("attempt", row.probed_attempt.value_or(row.attempt))
      .add("kind", row.is_probe ? "probe" : "attempt")
      .add("probe", probe)
      .add("outcome", row.outcome)
      .add("status_code", row.status_code)
      .add("error", error)
      .add("error_detail",
           registry::shown_error(audience, error, std::optional<std::string>(row.error_detail)))
      .add("started_at", row.started_at)
      .raw("phases", phases_json(row))
      .add("url", row.url)
      .add("connection_reused",
           row.bytes_sent ? std::optional<bool>((row.flags & kReused) != 0) : std::nullopt)
      .add("is_resent", (row.flags & kResent) != 0)
      .add("bytes_sent", row.bytes_sent)
      .raw("response", response_json(row, reader.sees_payloads));
  if (reader.sees_payloads) json.add("response_preview", row.preview);
  json.add("address", registry::shown_to_operators(audience, std::optional<std::string>(row.address)))
      .add("next_attempt_at", row.next_attempt_at)
      .add("node_id", model::NodeId{row.node_id}.public_id())
      .add("node", registry::shown_to_operators(audience, std::optional<std::string>(row.node_name)));
  return json;
}

}  // namespace

base::JsonObject attempt_json(const sql::attempts_of::Row& row, const registry::Principal& reader) {
  return timeline_json(row, reader);
}

base::JsonObject attempt_json(const sql::attempts_of_keys::Row& row, const registry::Principal& reader) {
  return timeline_json(row, reader);
}

}  // namespace postrider::history
