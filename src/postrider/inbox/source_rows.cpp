#include "postrider/inbox/source_rows.hpp"

#include "postrider/base/check.hpp"

namespace postrider::inbox {

void add_settings(pg::Params& params, Provider provider, const SourceSettings& settings) {
  std::optional<std::string> tenant, type;
  if (settings.forward) {
    tenant = settings.forward->tenant_id;
    type = settings.forward->type;
  }
  const std::string scheme = to_json(settings.signature);
  std::optional<pg::Json> signature;
  if (provider == Provider::hmac) signature = pg::Json{scheme};
  std::optional<std::string_view> deduplicate;
  if (settings.deduplicate) deduplicate = label(*settings.deduplicate);
  params.add(settings.description)
      .add(signature)
      .add(settings.tolerance_seconds)
      .add(settings.idempotency_key)
      .add(deduplicate)
      .add(settings.partition_key)
      .add(settings.is_strict ? "strict" : "none")
      .add(settings.headers)
      .add(settings.body_bytes_max)
      .add(settings.is_consumed)
      .add(tenant)
      .add(type)
      .add(settings.max_attempts);
}

std::vector<Source> read_sources(const pg::Rows& rows) {
  enum Column : size_t {
    id,
    provider,
    description,
    signature,
    tolerance_seconds,
    idempotency_key,
    deduplicate,
    partition_key,
    ordering,
    headers,
    body_bytes_max,
    consume,
    forward_tenant_id,
    forward_type,
    max_attempts,
    created_at,
    updated_at,
  };
  using Text = std::optional<std::string>;
  std::vector<Source> sources;
  for (size_t row = 0; row < rows.size(); ++row) {
    Source source;
    source.id = rows.get<std::string>(row, id);
    const auto known = parse_provider(rows.get<std::string_view>(row, provider));
    if (!known) throw pg::Error(pg::Kind::other, "source " + source.id + " has an unknown provider");
    source.provider = *known;
    SourceSettings& settings = source.settings;
    settings.description = rows.get<Text>(row, description);
    if (const auto scheme = rows.get<Text>(row, signature))
      settings.signature = hmac_scheme_from_json(*scheme);
    settings.tolerance_seconds = rows.get<int32_t>(row, tolerance_seconds);
    settings.idempotency_key = rows.get<Text>(row, idempotency_key);
    if (const auto word = rows.get<Text>(row, deduplicate)) settings.deduplicate = parse_deduplicate(*word);
    settings.partition_key = rows.get<Text>(row, partition_key);
    settings.is_strict = rows.get<std::string_view>(row, ordering) == "strict";
    settings.headers = rows.get<std::vector<std::string>>(row, headers);
    settings.body_bytes_max = rows.get<int32_t>(row, body_bytes_max);
    settings.is_consumed = rows.get<bool>(row, consume);
    if (const auto tenant = rows.get<Text>(row, forward_tenant_id))
      settings.forward = Forward{*tenant, rows.get<std::string>(row, forward_type)};
    settings.max_attempts = rows.get<int32_t>(row, max_attempts);
    source.created_at = rows.get<base::Timestamp>(row, created_at);
    source.updated_at = rows.get<base::Timestamp>(row, updated_at);
    sources.push_back(std::move(source));
  }
  return sources;
}

}  // namespace postrider::inbox
