#include "postrider/outbox/row.hpp"

namespace postrider::outbox {

std::vector<Row> read_rows(const pg::Rows& answer) {
  enum Column : size_t {
    id,
    xid,
    event_id,
    public_id,
    tenant_id,
    type,
    data,
    version,
    occurred_at,
    subject,
    traceparent,
    created_at
  };
  using OptionalText = std::optional<std::string>;
  std::vector<Row> rows(answer.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    Row& row = rows[i];
    row.id = answer.get<int64_t>(i, id);
    row.xid = answer.get<int64_t>(i, xid);
    publish::NewEvent& event = row.event;
    event.tenant_id = answer.get<OptionalText>(i, tenant_id).value_or("");
    event.type = answer.get<OptionalText>(i, type).value_or("");
    event.data = answer.get<std::optional<std::string_view>>(i, data).value_or("");
    event.id = answer.get<OptionalText>(i, public_id);
    row.has_own_id = event.id.has_value();
    event.version = answer.get<OptionalText>(i, version);
    event.occurred_at = answer.get<std::optional<base::Timestamp>>(i, occurred_at);
    event.subject = answer.get<OptionalText>(i, subject);
    event.traceparent = answer.get<OptionalText>(i, traceparent).value_or("");
    event.given_id =
        model::EventId{answer.get<std::optional<base::Uuid>>(i, event_id).value_or(base::Uuid{})};
    event.written_at = answer.get<std::optional<base::Timestamp>>(i, created_at);
    if (answer.is_null(i, data))
      row.fault = "data is null or has more than " + std::to_string(kDataBytesMax) + " bytes";
    if (answer.is_null(i, event_id)) row.fault = "event_id is null";
    if (!event.written_at) row.fault = "created_at is null";
  }
  return rows;
}

std::string fault_of(Row& row) {
  if (!row.fault.empty()) return row.fault;
  const auto faults = publish::faults_of(row.event);
  return faults.empty() ? publish::trim_data(row.event) : model::to_text(faults);
}

}  // namespace postrider::outbox
