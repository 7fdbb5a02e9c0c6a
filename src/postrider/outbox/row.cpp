#include "postrider/outbox/row.hpp"

#include "postrider/publish/json_scanner.hpp"

namespace postrider::outbox {

std::vector<Row> read_rows(const pg::Rows& answer) {
  enum Column : size_t {
    id,
    xid,
    event_id,
    outside_id,
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
    event.tenant_id = answer.get<std::string>(i, tenant_id);
    event.type = answer.get<std::string>(i, type);
    event.data = answer.get<std::string_view>(i, data);
    event.id = answer.get<OptionalText>(i, outside_id);
    row.has_own_id = event.id.has_value();
    event.version = answer.get<OptionalText>(i, version);
    event.occurred_at = answer.get<std::optional<base::Timestamp>>(i, occurred_at);
    event.subject = answer.get<OptionalText>(i, subject);
    event.traceparent = answer.get<OptionalText>(i, traceparent).value_or("");
    event.given_id = model::EventId{answer.get<base::Uuid>(i, event_id)};
    event.written_at = answer.get<base::Timestamp>(i, created_at);
  }
  return rows;
}

std::string check_data(Row& row) {
  publish::JsonScanner json(row.event.data);
  std::string_view value;
  if (!json.value(value) || !json.finish()) return "data is " + json.error();
  row.event.data = value;
  return {};
}

}  // namespace postrider::outbox
