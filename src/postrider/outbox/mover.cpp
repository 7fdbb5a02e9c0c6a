#include "postrider/outbox/mover.hpp"

#include <algorithm>

#include "postrider/base/text.hpp"
#include "postrider/outbox/relay.sql.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::outbox {

// Always three answers: the snapshot, taken before the others; late rows; fresh rows.
pg::Batch fresh_batch(const Window& window, const MoveLimits& limits) {
  const Position& from = window.position();
  pg::Batch batch;
  batch.add(sql::current_snapshot);
  batch.with(sql::late_rows, window.late(), limits.rows_max, limits.bytes_max, kDataBytesMax);
  batch.with(sql::fresh_rows, std::to_string(from.xid), from.id, limits.rows_max, limits.bytes_max,
             kDataBytesMax);
  return batch;
}

pg::Batch failed_batch(const MoveLimits& limits) {
  pg::Batch batch;
  batch.with(sql::failed_rows, limits.rows_max, limits.bytes_max, kDataBytesMax);
  return batch;
}

pg::Batch fail_batch(const std::vector<Failure>& failures, const MoveLimits& limits) {
  std::vector<const Failure*> sorted;
  for (const auto& failure : failures) sorted.push_back(&failure);
  std::sort(sorted.begin(), sorted.end(), [](const Failure* a, const Failure* b) { return a->id < b->id; });
  std::vector<int64_t> ids;
  std::vector<std::string> errors;  // they may repeat what is in the rows
  std::vector<int64_t> final_ids;
  for (const Failure* failure : sorted) {
    ids.push_back(failure->id);
    errors.push_back(base::storable(failure->error, kErrorBytesMax));
    if (failure->is_final) final_ids.push_back(failure->id);
  }
  pg::Batch batch;
  batch.with(sql::fail_rows, ids, errors, int32_t{limits.attempts_max}, limits.retry_seconds, final_ids);
  return batch;
}

void fence(pg::Batch& batch, const MoveLimits& limits) {
  if (limits.lease != nullptr) limits.lease->fence(batch);
}

std::vector<SetAside> read_set_aside(const pg::Rows& rows) {
  using Text = std::optional<std::string>;
  std::vector<SetAside> found;
  for (size_t i = 0; i < rows.size(); ++i)
    if (rows.get<bool>(i, 1))
      found.push_back({rows.get<int64_t>(i, 0), rows.get<Text>(i, 2).value_or(""),
                       rows.get<Text>(i, 3).value_or(""), rows.get<Text>(i, 4).value_or("")});
  return found;
}

void tell_set_aside(const std::string& outbox, const std::vector<SetAside>& rows) {
  for (const SetAside& row : rows)
    telemetry::log_warn("outbox_row_set_aside")
        .field("outbox", outbox)
        .field("row", row.id)
        .field("tenant_id", row.tenant_id)
        .field("event_type", row.type)
        .field("error", row.error);
}

}  // namespace postrider::outbox
