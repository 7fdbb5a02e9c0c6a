#include "postrider/outbox/drainer.hpp"

#include <algorithm>

#include "postrider/base/text.hpp"
#include "postrider/outbox/relay.sql.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::outbox {

// Always three results: the snapshot, taken before the others; late rows; fresh rows.
pg::Batch fresh_batch(const Window& window, const DrainLimits& limits, const Tenants& held) {
  const Position& from = window.position();
  pg::Batch batch;
  batch.add(sql::current_snapshot{});
  batch.add(sql::late_rows{.data_bytes_max = kDataBytesMax,
                           .transactions = window.late(),
                           .held_tenants = held,
                           .rows_max = limits.rows_max,
                           .bytes_max = limits.bytes_max});
  batch.add(sql::fresh_rows{.data_bytes_max = kDataBytesMax,
                            .xid = std::to_string(from.xid),
                            .id = from.id,
                            .held_tenants = held,
                            .rows_max = limits.rows_max,
                            .bytes_max = limits.bytes_max});
  return batch;
}

std::string_view snapshot_of(const pg::Rows& first) {
  return sql::current_snapshot::Row::read(first, 0).snapshot;
}

pg::Batch failed_batch(const DrainLimits& limits, const Tenants& held) {
  pg::Batch batch;
  batch.add(sql::failed_rows{.data_bytes_max = kDataBytesMax,
                             .held_tenants = held,
                             .rows_max = limits.rows_max,
                             .bytes_max = limits.bytes_max});
  return batch;
}

pg::Batch fail_batch(const std::vector<Failure>& failures, const DrainLimits& limits) {
  std::vector<const Failure*> sorted;
  for (const auto& failure : failures) sorted.push_back(&failure);
  std::sort(sorted.begin(), sorted.end(), [](const Failure* a, const Failure* b) { return a->id < b->id; });
  std::vector<int64_t> ids;
  std::vector<std::string> errors;  // they may repeat data of the rows
  std::vector<int64_t> final_ids;
  for (const Failure* failure : sorted) {
    ids.push_back(failure->id);
    errors.push_back(base::storable(failure->error, kErrorBytesMax));
    if (failure->is_final) final_ids.push_back(failure->id);
  }
  pg::Batch batch;
  batch.add(sql::fail_rows{.errors = errors,
                           .ids = ids,
                           .retry_seconds = limits.retry_seconds,
                           .attempts_max = limits.attempts_max,
                           .final_ids = final_ids});
  return batch;
}

void fence(pg::Batch& batch, const DrainLimits& limits) {
  if (limits.lease != nullptr) limits.lease->fence(batch);
}

std::vector<SetAside> read_set_aside(const pg::Rows& rows) {
  std::vector<SetAside> found;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto row = sql::fail_rows::Row::read(rows, i);
    if (row.is_set_aside)
      found.push_back({row.id, std::string(row.tenant_id.value_or("")), std::string(row.type.value_or("")),
                       std::string(row.last_error.value_or(""))});
  }
  return found;
}

void log_set_aside(const std::string& outbox, const std::vector<SetAside>& rows) {
  for (const SetAside& row : rows)
    telemetry::log_warn("outbox_row_set_aside")
        .field("outbox", outbox)
        .field("row", row.id)
        .field("tenant_id", row.tenant_id)
        .field("event_type", row.type)
        .field("error", row.error);
}

}  // namespace postrider::outbox
