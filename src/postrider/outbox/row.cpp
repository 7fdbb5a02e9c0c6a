#include "postrider/outbox/row.hpp"

#include "postrider/outbox/relay.sql.hpp"
#include "postrider/publish/event_request.hpp"

namespace postrider::outbox {

namespace {

std::optional<std::string> copy(std::optional<std::string_view> text) {
  if (!text) return std::nullopt;
  return std::string(*text);
}

}  // namespace

std::vector<OutboxRow> read_rows(const pg::Rows& rows) {
  std::vector<OutboxRow> found(rows.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const auto columns = sql::OutboxRow::read(rows, i);
    OutboxRow& row = found[i];
    row.id = columns.id;
    row.xid = columns.xid;
    publish::NewEvent& event = row.event;
    event.tenant_id = columns.tenant_id.value_or("");
    event.type = columns.type.value_or("");
    event.data = columns.data.value_or("");
    event.id = copy(columns.public_id);
    row.has_own_id = event.id.has_value();
    event.version = copy(columns.version);
    event.occurred_at = columns.occurred_at;
    event.subject = copy(columns.subject);
    event.traceparent = columns.traceparent.value_or("");
    event.given_id = model::EventId{columns.event_id.value_or(base::Uuid{})};
    event.written_at = columns.created_at;
    if (!columns.data)
      row.error = "data is null or has more than " + std::to_string(kDataBytesMax) + " bytes";
    if (columns.versions)
      if (const auto wrong = publish::read_versions(*columns.versions, event))
        row.error = std::string(wrong->field) + " " + wrong->detail;
    if (columns.has_versions.value_or(false) && !columns.versions)
      row.error = "versions has more than " + std::to_string(kDataBytesMax) + " bytes";
    if (!columns.event_id) row.error = "event_id is null";
    if (!columns.created_at) row.error = "created_at is null";
    if (columns.cut_from_bytes)
      row.error = "data was " + std::to_string(*columns.cut_from_bytes) +
                  " bytes, and only its beginning was kept: publish the event again";
    if (columns.set_aside_for) row.error = *columns.set_aside_for;
  }
  return found;
}

std::optional<std::string> error_of(OutboxRow& row) {
  if (row.error) return row.error;
  const auto errors = publish::errors_of(row.event);
  if (!errors.empty()) return model::to_text(errors);
  return publish::trim_data(row.event);
}

}  // namespace postrider::outbox
