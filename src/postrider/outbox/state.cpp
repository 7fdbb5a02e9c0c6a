#include "postrider/outbox/state.hpp"

#include "postrider/outbox/damage.hpp"
#include "postrider/outbox/state.sql.hpp"

namespace postrider::outbox {

namespace {

constexpr int32_t kFailingShown = 10;

std::string text(std::optional<std::string_view> column) {
  return std::string(column.value_or(""));
}

std::optional<pg::ArrayOf<int64_t>> array_of(const std::optional<std::vector<int64_t>>& ids) {
  if (!ids) return std::nullopt;
  return *ids;
}

}  // namespace

pg::Batch state_batch() {
  return pg::Batch::of(sql::outbox_state{}, sql::relay_state{}, sql::empty_tables{});
}

OutboxState read_state(const std::vector<pg::Rows>& results) {
  const auto now = sql::outbox_state::Row::read(results[0], 0);
  OutboxState state;
  state.oldest_at = now.oldest_at;
  state.stuck = now.stuck;
  if (const auto empty = sql::empty_tables::Row::read(results[2], 0); empty.tables)
    state.damage = missing_row(std::string(*empty.tables)).what();
  if (results[1].empty()) return state;
  const auto relay = sql::relay_state::Row::read(results[1], 0);
  if (relay.owner) state.relay = *relay.owner;
  state.relay_beat_at = relay.heartbeat_at;
  return state;
}

pg::Batch stuck_batch(int64_t after, int limit) {
  return pg::Batch::of(sql::stuck_rows{.after = after, .rows_max = limit});
}

std::vector<StuckRow> read_stuck(const pg::Rows& rows) {
  std::vector<StuckRow> stuck;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto row = sql::stuck_rows::Row::read(rows, i);
    stuck.push_back({row.id, text(row.public_id), text(row.tenant_id), text(row.type), text(row.last_error),
                     row.attempts.value_or(0), row.created_at.value_or(base::Timestamp{}), row.set_aside_at,
                     row.cut_from_bytes});
  }
  return stuck;
}

pg::Batch release_batch(const std::optional<std::vector<int64_t>>& ids) {
  return pg::Batch::of(sql::cut_rows{.ids = array_of(ids), .rows_max = kCutRowsMax},
                       sql::release_rows{.ids = array_of(ids)});
}

Released read_released(const std::vector<pg::Rows>& results) {
  Released released{.rows = results[1].affected_rows(), .cut = {}};
  for (size_t i = 0; i < results[0].size(); ++i)
    released.cut.push_back(sql::cut_rows::Row::read(results[0], i).id);
  return released;
}

pg::Batch discard_batch(const std::optional<std::vector<int64_t>>& ids) {
  return pg::Batch::of(sql::discard_rows{.ids = array_of(ids)});
}

pg::Batch status_batch() {
  pg::Batch batch = state_batch();
  batch.add(sql::invalid_events{});
  batch.add(sql::waiting_counts{.counted_max = static_cast<int32_t>(outbox_counted_max)});
  batch.add(sql::failing_rows{.rows_max = kFailingShown});
  return batch;
}

std::optional<std::string> read_on_invalid(const std::vector<pg::Rows>& results) {
  const pg::Rows& rows = results[results.size() - 3];
  if (rows.empty()) return std::nullopt;
  return std::string(sql::invalid_events::Row::read(rows, 0).on_invalid);
}

pg::Batch set_on_invalid_batch(const std::string& on_invalid) {
  return pg::Batch::of(sql::set_on_invalid{.on_invalid = on_invalid});
}

Waiting read_waiting(const std::vector<pg::Rows>& results) {
  const auto counts = sql::waiting_counts::Row::read(results[results.size() - 2], 0);
  const pg::Rows& rows = results.back();
  Waiting found{.waiting = counts.waiting, .failing = counts.failing, .failing_rows = {}};
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto row = sql::failing_rows::Row::read(rows, i);
    found.failing_rows.push_back({row.id, text(row.public_id), text(row.tenant_id), text(row.type),
                                  text(row.last_error), row.attempts.value_or(0),
                                  row.created_at.value_or(base::Timestamp{}), row.retry_at});
  }
  return found;
}

}  // namespace postrider::outbox
