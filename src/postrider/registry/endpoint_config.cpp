#include "postrider/registry/endpoint_config.hpp"

#include <algorithm>

#include "postrider/http/client/client.hpp"
#include "postrider/registry/columns.hpp"
#include "postrider/registry/endpoint_config.sql.hpp"
#include "postrider/registry/sealing.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::registry {

namespace {

using Row = sql::load_endpoint_configs::Row;

std::vector<base::Uuid> uuids_of(std::span<const model::EndpointId> ids) {
  std::vector<base::Uuid> uuids;
  uuids.reserve(ids.size());
  for (const auto& id : ids) uuids.push_back(id.uuid);
  return uuids;
}

PauseSpans spans_of(const std::vector<base::Timestamp>& since,
                    const std::vector<std::optional<base::Timestamp>>& until) {
  PauseSpans spans;
  for (size_t i = 0; i < since.size(); ++i) spans.push_back({since[i], until[i]});
  return merged(std::move(spans));
}

// A delivery that is older than this has expired, so spans that ended before it say nothing any more.
void drop_old_spans(EndpointConfig& config, base::Timestamp now) {
  const auto oldest = running_since(config.pause_spans, std::chrono::seconds(config.give_up_seconds), now);
  const auto is_old = [oldest](const PauseSpan& span) { return span.until && *span.until <= oldest; };
  std::erase_if(config.pause_spans, is_old);
  std::erase_if(config.unserved_spans, is_old);
}

// Decrypts into `config`, or marks it unreadable.
void open_sealed(LoadedEndpoint& config, const Row& row, const crypto::MasterKeys& keys) {
  const Sealing sealing{keys, config.id};
  const auto unreadable = [&](std::string_view why) {
    telemetry::log_error("endpoint_unreadable")
        .field("endpoint_id", config.public_id)
        .field("tenant_id", config.tenant_id)
        .field("error", why);
    config.unreadable = true;
    config.secrets.clear();
    config.header_lines.clear();
  };
  for (size_t i = 0; i < row.secrets_sealed.size(); ++i) {
    auto secret = sealing.open_secret({row.secret_ids[i]}, row.secrets_sealed[i].view);
    if (!secret) return unreadable(crypto::describe(secret.error()));
    config.secrets.push_back({std::move(*secret), row.secrets_expire_at[i]});
  }
  if (const auto headers = row.headers_sealed) {
    const auto opened = sealing.open_headers(headers->view);
    if (!opened) return unreadable(crypto::describe(opened.error()));
    for (const auto& header : *opened)
      if (!http::append_header(config.header_lines, header.name, header.value))
        return unreadable("a custom header has characters that are not allowed in a header");
  }
}

LoadedEndpoint read_config(const Row& row, const crypto::MasterKeys& keys) {
  LoadedEndpoint config;
  config.id.uuid = row.id;
  config.public_id = row.public_id;
  config.tenant_id = row.tenant_id;
  config.bucket = row.bucket;
  config.status = known(model::parse_endpoint_status(row.status));
  config.tenant_status = known(model::parse_tenant_status(row.tenant_status));
  config.url = row.url;
  config.url_version = row.url_version;
  config.max_attempts = row.max_attempts;
  config.timeout_ms = row.timeout_ms;
  config.give_up_seconds = row.give_up_seconds;
  config.max_in_flight = row.max_in_flight;
  config.rate_per_second = row.rate_per_second;
  config.ordering = known(model::parse_ordering(row.ordering));
  config.retry_schedule = row.retry_schedule;
  config.on_rejected = known(model::parse_on_rejected(row.on_rejected));
  config.is_breaker_open = row.is_breaker_open;
  config.is_failing = row.is_failing;
  config.failures = row.failures;
  config.last_success_at = row.last_success_at;
  config.signature = known(crypto::parse_signature_scheme(row.signature));
  config.tenant_max_in_flight = row.tenant_max_in_flight;
  config.tenant_rate_per_second = row.tenant_rate_per_second;
  config.networks = {networks_of(row.tenant_allow_networks), networks_of(row.allow_networks)};
  config.pause_spans = spans_of(row.paused_since, row.paused_until);
  config.unserved_spans = spans_of(row.unserved_since, row.unserved_until);
  drop_old_spans(config, row.read_at);
  config.cancel_before = row.cancel_before;
  config.cancel_reason = row.cancel_reason;
  config.held_reason = row.held_reason.value_or("");
  open_sealed(config, row, keys);
  return config;
}

std::vector<LoadedEndpoint> read_configs(const pg::RowsOf<sql::load_endpoint_configs>& rows,
                                         const crypto::MasterKeys& keys) {
  std::vector<LoadedEndpoint> configs;
  configs.reserve(rows.size());
  for (const auto& row : rows) configs.push_back(read_config(row, keys));
  return configs;
}

}  // namespace

// Equal lists of two owners are two profiles. An endpoint without networks of its own shares its tenant's.
std::shared_ptr<const http::DialProfile> profile_of(http::Client& client, const LoadedEndpoint& endpoint) {
  const AllowedNetworks& networks = endpoint.networks;
  std::vector<base::Network> of_endpoint;
  if (!networks.of_endpoint.empty()) of_endpoint = networks.both();
  auto own = client.profile_of("endpoint/" + endpoint.id.public_id(), of_endpoint);
  if (own) return own;
  return profile_of_tenant(client, endpoint.tenant_id, networks.of_tenant);
}

runtime::Task<std::vector<LoadedEndpoint>> load_endpoint_configs(pg::Link& link,
                                                                 std::span<const model::EndpointId> ids,
                                                                 const crypto::MasterKeys& keys) {
  const auto rows = co_await link.run(sql::load_endpoint_configs{.ids = uuids_of(ids)});
  co_return read_configs(rows, keys);
}

runtime::Task<std::vector<LoadedEndpoint>> load_endpoint_configs(pg::Connection& connection,
                                                                 std::span<const model::EndpointId> ids,
                                                                 const crypto::MasterKeys& keys) {
  const auto rows = co_await connection.run(sql::load_endpoint_configs{.ids = uuids_of(ids)});
  co_return read_configs(rows, keys);
}

}  // namespace postrider::registry
