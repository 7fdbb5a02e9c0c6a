#include "postrider/registry/endpoint_config.hpp"

#include <algorithm>

#include "postrider/http/client.hpp"
#include "postrider/registry/columns.hpp"
#include "postrider/registry/endpoint_config.sql.hpp"
#include "postrider/registry/sealing.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::registry {

namespace {

// Columns of load_endpoint_configs, in order.
enum Column : size_t {
  id,
  outside_id,
  tenant_id,
  bucket,
  status,
  tenant_status,
  url,
  max_attempts,
  timeout_ms,
  give_up_seconds,
  max_in_flight,
  rate_per_second,
  ordering,
  retry_schedule,
  on_rejected,
  is_breaker_open,
  is_failing,
  failures,
  signature,
  headers_sealed,
  tenant_max_in_flight,
  tenant_rate_per_second,
  secrets_sealed,
  secrets_expire_at,
  pauses_since,
  pauses_until,
  cancel_before,
  held_reason,
};

pg::Params ids_parameter(std::span<const model::EndpointId> ids) {
  std::vector<base::Uuid> uuids;
  uuids.reserve(ids.size());
  for (const auto& id : ids) uuids.push_back(id.uuid);
  return pg::Params(uuids);
}

// Overlapping and touching spans become one, so that no second is counted twice.
std::vector<PauseSpan> merged(const std::vector<base::Timestamp>& since,
                              const std::vector<std::optional<base::Timestamp>>& until) {
  std::vector<PauseSpan> spans;
  for (size_t i = 0; i < since.size(); ++i) {
    if (spans.empty() || (spans.back().until && *spans.back().until < since[i])) {
      spans.push_back({since[i], until[i]});
    } else if (auto& last = spans.back(); last.until && (!until[i] || *until[i] > *last.until)) {
      last.until = until[i];
    }
  }
  return spans;
}

// Decrypts into `config`, or marks it unreadable.
void open_sealed(LoadedEndpoint& config, const pg::Rows& rows, size_t row, const crypto::MasterKeys& keys) {
  const Sealing sealing{keys, config.id};
  const auto sealed = rows.get<std::vector<pg::Bytes>>(row, secrets_sealed);
  const auto expires_at = rows.get<std::vector<std::optional<base::Timestamp>>>(row, secrets_expire_at);
  const auto unreadable = [&](crypto::OpenError error) {
    telemetry::log_error("endpoint_unreadable")
        .field("endpoint_id", config.outside_id)
        .field("tenant_id", config.tenant_id)
        .field("error", crypto::describe(error));
    config.unreadable = true;
    config.secrets.clear();
    config.header_lines.clear();
  };
  for (size_t i = 0; i < sealed.size(); ++i) {
    auto secret = sealing.open_secret(sealed[i].view);
    if (!secret) return unreadable(secret.error());
    config.secrets.push_back({std::move(*secret), expires_at[i]});
  }
  if (const auto headers = rows.get<std::optional<pg::Bytes>>(row, headers_sealed)) {
    const auto opened = sealing.open_headers(headers->view);
    if (!opened) return unreadable(opened.error());
    for (const auto& header : *opened) http::append_header(config.header_lines, header.name, header.value);
  }
}

LoadedEndpoint read_config(const pg::Rows& rows, size_t row, const crypto::MasterKeys& keys) {
  const auto word = [&](Column column) { return rows.get<std::string_view>(row, column); };
  LoadedEndpoint config;
  config.id.uuid = rows.get<base::Uuid>(row, id);
  config.outside_id = rows.get<std::string>(row, outside_id);
  config.tenant_id = rows.get<std::string>(row, tenant_id);
  config.bucket = rows.get<int32_t>(row, bucket);
  config.status = known(model::parse_endpoint_status(word(status)));
  config.tenant_status = known(model::parse_tenant_status(word(tenant_status)));
  config.url = rows.get<std::string>(row, url);
  config.max_attempts = rows.get<int32_t>(row, max_attempts);
  config.timeout_ms = rows.get<int32_t>(row, timeout_ms);
  config.give_up_seconds = rows.get<int32_t>(row, give_up_seconds);
  config.max_in_flight = rows.get<int32_t>(row, max_in_flight);
  config.rate_per_second = rows.get<std::optional<double>>(row, rate_per_second);
  config.ordering = known(model::parse_ordering(word(ordering)));
  config.retry_schedule = rows.get<std::string>(row, retry_schedule);
  config.on_rejected = known(model::parse_on_rejected(word(on_rejected)));
  config.is_breaker_open = rows.get<bool>(row, is_breaker_open);
  config.is_failing = rows.get<bool>(row, is_failing);
  config.failures = rows.get<int32_t>(row, failures);
  config.signature = known(crypto::parse_signature_scheme(word(signature)));
  config.tenant_max_in_flight = rows.get<std::optional<int32_t>>(row, tenant_max_in_flight);
  config.tenant_rate_per_second = rows.get<std::optional<double>>(row, tenant_rate_per_second);
  config.pause_spans = merged(rows.get<std::vector<base::Timestamp>>(row, pauses_since),
                              rows.get<std::vector<std::optional<base::Timestamp>>>(row, pauses_until));
  config.cancel_before = rows.get<std::optional<base::Timestamp>>(row, cancel_before);
  config.held_reason = rows.get<std::optional<std::string>>(row, held_reason).value_or("");
  open_sealed(config, rows, row, keys);
  return config;
}

std::vector<LoadedEndpoint> read_configs(const pg::Rows& rows, const crypto::MasterKeys& keys) {
  std::vector<LoadedEndpoint> configs;
  configs.reserve(rows.size());
  for (size_t row = 0; row < rows.size(); ++row) configs.push_back(read_config(rows, row, keys));
  return configs;
}

}  // namespace

runtime::Task<std::vector<LoadedEndpoint>> load_endpoint_configs(pg::Link& link,
                                                                 std::span<const model::EndpointId> ids,
                                                                 const crypto::MasterKeys& keys) {
  pg::Params params = ids_parameter(ids);
  const pg::Rows rows = co_await link.run_one(sql::load_endpoint_configs, std::move(params));
  co_return read_configs(rows, keys);
}

runtime::Task<std::vector<LoadedEndpoint>> load_endpoint_configs(pg::Connection& connection,
                                                                 std::span<const model::EndpointId> ids,
                                                                 const crypto::MasterKeys& keys) {
  pg::Params params = ids_parameter(ids);
  const pg::Rows rows = co_await connection.run_one(sql::load_endpoint_configs, std::move(params));
  co_return read_configs(rows, keys);
}

std::chrono::microseconds paused_between(std::span<const PauseSpan> spans, base::Timestamp from,
                                         base::Timestamp to) {
  std::chrono::microseconds paused{0};
  for (const auto& span : spans) {
    const auto start = std::max(span.since, from);
    const auto end = std::min(span.until.value_or(to), to);
    if (start < end) paused += end - start;
  }
  return paused;
}

}  // namespace postrider::registry
