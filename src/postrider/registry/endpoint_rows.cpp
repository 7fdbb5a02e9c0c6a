#include "postrider/registry/endpoint_rows.hpp"

#include <algorithm>

#include "postrider/base/encoding.hpp"
#include "postrider/base/json_writer.hpp"
#include "postrider/registry/allow_networks.hpp"
#include "postrider/registry/columns.hpp"

namespace postrider::registry {

namespace {

// Five days of nothing but failure disable an endpoint; from half of it on it is unhealthy.
constexpr std::chrono::hours kUnhealthyAfter{60};
constexpr int32_t kUnhealthyAttemptsMin = 10;

using Row = sql::load_endpoints::Row;

EndpointSettings read_settings(const Row& row) {
  EndpointSettings settings;
  settings.url = row.url;
  settings.description = row.description;
  settings.max_attempts = row.max_attempts;
  settings.timeout_ms = row.timeout_ms;
  settings.give_up_seconds = row.give_up_seconds;
  settings.max_in_flight = row.max_in_flight;
  settings.rate_per_second = row.rate_per_second;
  settings.ordering = known(model::parse_ordering(row.ordering));
  settings.retry_schedule = row.retry_schedule;
  settings.on_rejected = known(model::parse_on_rejected(row.on_rejected));
  settings.signature = known(crypto::parse_signature_scheme(row.signature));
  settings.allow_networks = networks_of(row.allow_networks);
  settings.metadata = row.metadata;
  return settings;
}

Endpoint read_endpoint(const Row& row, int32_t pending_max) {
  Endpoint endpoint;
  endpoint.id.uuid = row.id;
  endpoint.public_id = row.public_id;
  endpoint.tenant_id = row.tenant_id;
  endpoint.bucket = row.bucket;
  if (row.headers_sealed) endpoint.headers_sealed = row.headers_sealed->view;
  endpoint.settings = read_settings(row);
  endpoint.status = known(model::parse_endpoint_status(row.status));
  endpoint.status_reason = row.status_reason;
  endpoint.status_since = row.status_since;
  endpoint.status_by = known(model::parse_actor(row.status_by));
  endpoint.failing_since = row.failing_since;
  endpoint.last_success_at = row.last_success_at;
  endpoint.last_failure_at = row.last_failure_at;
  endpoint.is_breaker_open = row.is_breaker_open;
  endpoint.breaker_since = row.breaker_since;
  endpoint.next_probe_at = row.next_probe_at;
  endpoint.failures = row.failures;
  endpoint.failing_counted_from = row.failing_counted_from;
  endpoint.last_probe_at = row.last_probe_at;
  endpoint.last_probe_error = row.last_probe_error;
  endpoint.held_reason = row.held_reason;
  endpoint.held_since = row.held_since;
  endpoint.revision = row.revision;
  endpoint.failed_attempts = row.failed_attempts;
  endpoint.created_at = row.created_at;
  endpoint.updated_at = row.updated_at;
  endpoint.read_at = row.read_at;
  endpoint.patterns.assign(row.patterns.begin(), row.patterns.end());
  endpoint.pending = row.pending;
  endpoint.oldest_pending_at = row.oldest_at;
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

std::vector<Endpoint> read_endpoints(const pg::RowsOf<sql::load_endpoints>& rows, int32_t pending_max) {
  std::vector<Endpoint> endpoints;
  endpoints.reserve(rows.size());
  for (const auto& row : rows) endpoints.push_back(read_endpoint(row, pending_max));
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
      .add("status_by", model::label(endpoint.status_by))
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
      .add("allow_networks", texts_of(settings.allow_networks))
      .raw_or_null("metadata", settings.metadata);
  return fields;
}

std::string_view Endpoint::health() const {
  if (!failing_since) return "healthy";
  const bool is_long = read_at - *failing_since >= kUnhealthyAfter;
  return is_long && failed_attempts >= kUnhealthyAttemptsMin ? "unhealthy" : "failing";
}

}  // namespace postrider::registry
