#include "postrider/inbox/source_rows.hpp"

#include <utility>

#include "postrider/pg/error.hpp"

namespace postrider::inbox {

namespace {

Source read_source(const sql::load_sources::Row& row) {
  Source source;
  source.id = row.id;
  const auto known = parse_provider(row.provider);
  if (!known) throw pg::Error(pg::Kind::other, "source " + source.id + " has an unknown provider");
  source.provider = *known;
  SourceSettings& settings = source.settings;
  settings.description = row.description;
  if (row.signature) settings.signature = hmac_scheme_from_json(std::string(*row.signature));
  settings.tolerance_seconds = row.tolerance_seconds;
  settings.idempotency_key = row.idempotency_key;
  if (row.deduplicate) settings.deduplicate = parse_deduplicate(*row.deduplicate);
  settings.partition_key = row.partition_key;
  settings.is_strict = row.ordering == "strict";
  settings.headers.assign(row.headers.begin(), row.headers.end());
  settings.body_bytes_max = row.body_bytes_max;
  settings.is_consumed = row.consume;
  if (row.forward_tenant_id)
    settings.forward = Forward{std::string(*row.forward_tenant_id), std::string(row.forward_type.value())};
  settings.max_attempts = row.max_attempts;
  source.created_at = row.created_at;
  source.updated_at = row.updated_at;
  return source;
}

std::string_view ordering_of(const SourceSettings& settings) {
  return settings.is_strict ? "strict" : "none";
}

}  // namespace

SourceWriter::SourceWriter(const Source& source)
    : source_(source), scheme_(to_json(source.settings.signature)) {
  const SourceSettings& settings = source.settings;
  if (source.provider == Provider::hmac) signature_ = pg::Json{scheme_};
  if (settings.deduplicate) deduplicate_ = label(*settings.deduplicate);
  if (!settings.forward) return;
  forward_tenant_ = settings.forward->tenant_id;
  forward_type_ = settings.forward->type;
}

sql::insert_source SourceWriter::insert() const {
  const SourceSettings& settings = source_.settings;
  return {.id = source_.id,
          .provider = label(source_.provider),
          .description = settings.description,
          .signature = signature_,
          .tolerance_seconds = settings.tolerance_seconds,
          .idempotency_key = settings.idempotency_key,
          .deduplicate = deduplicate_,
          .partition_key = settings.partition_key,
          .ordering = ordering_of(settings),
          .headers = settings.headers,
          .body_bytes_max = settings.body_bytes_max,
          .consume = settings.is_consumed,
          .forward_tenant = forward_tenant_,
          .forward_type = forward_type_,
          .max_attempts = settings.max_attempts};
}

sql::update_source SourceWriter::update() const {
  const SourceSettings& settings = source_.settings;
  return {.description = settings.description,
          .signature = signature_,
          .tolerance_seconds = settings.tolerance_seconds,
          .idempotency_key = settings.idempotency_key,
          .deduplicate = deduplicate_,
          .partition_key = settings.partition_key,
          .ordering = ordering_of(settings),
          .headers = settings.headers,
          .body_bytes_max = settings.body_bytes_max,
          .consume = settings.is_consumed,
          .forward_tenant = forward_tenant_,
          .forward_type = forward_type_,
          .max_attempts = settings.max_attempts,
          .id = source_.id};
}

std::vector<Source> read_sources(const pg::RowsOf<sql::load_sources>& rows) {
  std::vector<Source> sources;
  for (const auto& row : rows) sources.push_back(read_source(row));
  return sources;
}

}  // namespace postrider::inbox
