#include "postrider/history/attempt_rows.hpp"

#include "postrider/model/ids.hpp"
#include "postrider/registry/audience.hpp"

namespace postrider::history {

namespace {

std::string phases_json(const pg::Rows& rows, size_t row) {
  base::JsonObject json;
  json.add("lookup_us", rows.get<std::optional<int32_t>>(row, 6))
      .add("connect_us", rows.get<std::optional<int32_t>>(row, 7))
      .add("tls_us", rows.get<std::optional<int32_t>>(row, 8))
      .add("first_byte_us", rows.get<std::optional<int32_t>>(row, 9))
      .add("total_us", rows.get<int32_t>(row, 10));
  return json.text();
}

}  // namespace

base::JsonObject attempt_json(const pg::Rows& rows, size_t row, const registry::Principal& reader) {
  const http::Audience audience = registry::audience_of(reader);
  const auto error = rows.get<std::optional<std::string>>(row, 3);
  base::JsonObject json;
  json.add("attempt", rows.get<int32_t>(row, 0))
      .add("outcome", rows.get<std::string_view>(row, 1))
      .add("status_code", rows.get<std::optional<int32_t>>(row, 2))
      .add("error", error)
      .add("error_detail",
           registry::shown_error(audience, error, rows.get<std::optional<std::string>>(row, 4)))
      .add("started_at", rows.get<base::Timestamp>(row, 5))
      .raw("phases", phases_json(rows, row));
  if (reader.sees_payloads) json.add("response_preview", rows.get<std::optional<std::string>>(row, 11));
  json.add("address", registry::shown_to_operators(audience, rows.get<std::optional<std::string>>(row, 12)))
      .add("next_attempt_at", rows.get<std::optional<base::Timestamp>>(row, 13))
      .add("node_id", model::NodeId{rows.get<base::Uuid>(row, 14)}.public_id())
      .add("node", registry::shown_to_operators(audience, rows.get<std::optional<std::string>>(row, 15)));
  return json;
}

}  // namespace postrider::history
