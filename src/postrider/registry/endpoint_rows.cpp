#include "postrider/registry/endpoint_rows.hpp"

#include <algorithm>

#include "postrider/base/encoding.hpp"
#include "postrider/base/json_writer.hpp"
#include "postrider/registry/columns.hpp"

namespace postrider::registry {

namespace {

// Five days of nothing but failure disable an endpoint; from half of it on it is unhealthy.
constexpr std::chrono::hours kUnhealthyAfter{60};
constexpr int32_t kUnhealthyAttemptsMin = 10;

// Reads the columns of one row from left to right.
class RowReader {
 public:
  RowReader(const pg::Rows& rows, size_t row) : rows_(rows), row_(row) {}

  template <class T>
  T next() {
    return rows_.get<T>(row_, column_++);
  }
  template <class T>
  void next(T& value) {
    value = next<T>();
  }

 private:
  const pg::Rows& rows_;
  size_t row_;
  size_t column_ = 0;
};

EndpointSettings read_settings(RowReader& row) {
  EndpointSettings settings;
  row.next(settings.url);
  row.next(settings.description);
  row.next(settings.max_attempts);
  row.next(settings.timeout_ms);
  row.next(settings.give_up_seconds);
  row.next(settings.max_in_flight);
  row.next(settings.rate_per_second);
  settings.ordering = known(model::parse_ordering(row.next<std::string_view>()));
  row.next(settings.retry_schedule);
  settings.on_rejected = known(model::parse_on_rejected(row.next<std::string_view>()));
  settings.signature = known(crypto::parse_signature_scheme(row.next<std::string_view>()));
  row.next(settings.metadata);
  return settings;
}

Endpoint read_endpoint(RowReader row, int32_t pending_max) {
  Endpoint endpoint;
  endpoint.id.uuid = row.next<base::Uuid>();
  row.next(endpoint.outside_id);
  row.next(endpoint.tenant_id);
  row.next(endpoint.bucket);
  if (const auto sealed = row.next<std::optional<pg::Bytes>>()) endpoint.headers_sealed = sealed->view;
  endpoint.settings = read_settings(row);
  endpoint.status = known(model::parse_endpoint_status(row.next<std::string_view>()));
  row.next(endpoint.status_reason);
  row.next(endpoint.status_since);
  row.next(endpoint.is_status_automatic);
  row.next(endpoint.failing_since);
  row.next(endpoint.last_success_at);
  row.next(endpoint.last_failure_at);
  row.next(endpoint.is_breaker_open);
  row.next(endpoint.last_probe_at);
  row.next(endpoint.last_probe_error);
  row.next(endpoint.held_reason);
  row.next(endpoint.held_since);
  row.next(endpoint.revision);
  row.next(endpoint.failed_attempts);
  row.next(endpoint.created_at);
  row.next(endpoint.updated_at);
  row.next(endpoint.read_at);
  row.next(endpoint.patterns);
  row.next(endpoint.pending);
  row.next(endpoint.oldest_pending_at);
  endpoint.is_pending_capped = endpoint.pending >= pending_max;
  endpoint.pending = std::min(endpoint.pending, pending_max);
  return endpoint;
}

std::string masked_headers(const Endpoint& endpoint, const crypto::MasterKeys* keys) {
  if (endpoint.headers_sealed.empty()) return "{}";
  const base::Result<CustomHeaders, crypto::OpenError> headers =
      keys ? Sealing{*keys, endpoint.id}.open_headers(endpoint.headers_sealed)
           : base::Failure{crypto::OpenError{}};
  if (!headers) return base::json_quoted(masked_text);
  base::JsonObject json;
  for (const auto& header : *headers) json.add(header.name, masked_text);
  return json.text();
}

}  // namespace

void add_settings(pg::Params& params, const EndpointSettings& settings) {
  params.add(settings.url)
      .add(settings.description)
      .add(settings.max_attempts)
      .add(settings.timeout_ms)
      .add(settings.give_up_seconds)
      .add(settings.max_in_flight)
      .add(settings.rate_per_second)
      .add(model::label(settings.ordering))
      .add(json_column(settings.retry_schedule))
      .add(model::label(settings.on_rejected))
      .add(crypto::label(settings.signature))
      .add(json_column(settings.metadata));
}

std::vector<Endpoint> read_endpoints(const pg::Rows& rows, int32_t pending_max) {
  std::vector<Endpoint> endpoints;
  endpoints.reserve(rows.size());
  for (size_t row = 0; row < rows.size(); ++row)
    endpoints.push_back(read_endpoint(RowReader(rows, row), pending_max));
  return endpoints;
}

Snapshot snapshot(const Endpoint& endpoint, const crypto::MasterKeys* keys) {
  const EndpointSettings& settings = endpoint.settings;
  Snapshot fields;
  fields.add("url", settings.url)
      .add("description", settings.description)
      .add("event_types", endpoint.patterns)
      .add("status", model::label(endpoint.status))
      .add("status_reason", endpoint.status_reason)
      .add("max_attempts", settings.max_attempts)
      .add("timeout_ms", settings.timeout_ms)
      .add("give_up_seconds", settings.give_up_seconds)
      .add("max_in_flight", settings.max_in_flight)
      .add("rate_per_second", settings.rate_per_second)
      .add("ordering", model::label(settings.ordering))
      .raw_or_null("retry_schedule", settings.retry_schedule)
      .add("on_rejected", model::label(settings.on_rejected))
      .masked("headers", masked_headers(endpoint, keys), endpoint.headers_sealed)
      .add("signature", crypto::label(settings.signature))
      .raw_or_null("metadata", settings.metadata);
  return fields;
}

std::string_view Endpoint::health() const {
  if (!failing_since) return "healthy";
  const bool is_long = read_at - *failing_since >= kUnhealthyAfter;
  return is_long && failed_attempts >= kUnhealthyAttemptsMin ? "unhealthy" : "failing";
}

}  // namespace postrider::registry
