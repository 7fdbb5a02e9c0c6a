#include "postrider/history/attempt_rows.hpp"

#include "postrider/model/ids.hpp"
#include "postrider/registry/audience.hpp"

namespace postrider::history {

namespace {

template <class Row>
std::string phases_json(const Row& row) {
  base::JsonObject json;
  json.add("lookup_us", row.dns_us)
      .add("connect_us", row.connect_us)
      .add("tls_us", row.tls_us)
      .add("first_byte_us", row.first_byte_us)
      .add("total_us", row.total_us);
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
      .raw("phases", phases_json(row));
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
