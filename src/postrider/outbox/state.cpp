#include "postrider/outbox/state.hpp"

#include "postrider/outbox/damage.hpp"
#include "postrider/outbox/state.sql.hpp"

namespace postrider::outbox {

namespace {

using Text = std::optional<std::string>;
using Time = std::optional<base::Timestamp>;

constexpr int32_t kFailingShown = 10;

// $1 of the statements about rows that were set aside: these, or all.
pg::Params ids_or_all(const std::optional<std::vector<int64_t>>& ids) {
  pg::Params params;
  if (ids)
    params.add(*ids);
  else
    params.null<std::vector<int64_t>>();
  return params;
}

}  // namespace

pg::Batch state_batch() {
  pg::Batch batch;
  batch.add(sql::outbox_state).add(sql::relay_state).add(sql::empty_tables);
  return batch;
}

OutboxState read_state(const std::vector<pg::Rows>& answers) {
  OutboxState state;
  state.oldest_at = answers[0].get<std::optional<base::Timestamp>>(0, 0);
  state.stuck = answers[0].get<int64_t>(0, 1);
  if (const auto tables = answers[2].get<std::optional<std::string>>(0, 0))
    state.damage = missing_row(*tables).what();
  if (answers[1].empty()) return state;
  state.relay = answers[1].get<std::optional<std::string>>(0, 0);
  state.relay_beat_at = answers[1].get<std::optional<base::Timestamp>>(0, 1);
  return state;
}

pg::Batch stuck_batch(int64_t after, int limit) {
  pg::Batch batch;
  batch.with(sql::stuck_rows, after, int32_t{limit});
  return batch;
}

std::vector<StuckRow> read_stuck(const pg::Rows& rows) {
  std::vector<StuckRow> stuck;
  for (size_t i = 0; i < rows.size(); ++i)
    stuck.push_back({rows.get<int64_t>(i, 0), rows.get<Text>(i, 1).value_or(""),
                     rows.get<Text>(i, 2).value_or(""), rows.get<Text>(i, 3).value_or(""),
                     rows.get<Text>(i, 4).value_or(""), rows.get<std::optional<int32_t>>(i, 5).value_or(0),
                     rows.get<std::optional<base::Timestamp>>(i, 6).value_or(base::Timestamp{}),
                     rows.get<base::Timestamp>(i, 7)});
  return stuck;
}

pg::Batch release_batch(const std::optional<std::vector<int64_t>>& ids) {
  return pg::Batch(sql::release_rows, ids_or_all(ids));
}

pg::Batch discard_batch(const std::optional<std::vector<int64_t>>& ids) {
  return pg::Batch(sql::discard_rows, ids_or_all(ids));
}

pg::Batch status_batch() {
  pg::Batch batch = state_batch();
  batch.with(sql::waiting_counts, static_cast<int32_t>(outbox_counted_max));
  batch.with(sql::failing_rows, kFailingShown);
  return batch;
}

Waiting read_waiting(const std::vector<pg::Rows>& results) {
  const pg::Rows& counts = results[results.size() - 2];
  const pg::Rows& rows = results.back();
  Waiting found;
  found.waiting = counts.get<int64_t>(0, 0);
  found.failing = counts.get<int64_t>(0, 1);
  for (size_t i = 0; i < rows.size(); ++i)
    found.failing_rows.push_back({rows.get<int64_t>(i, 0), rows.get<Text>(i, 1).value_or(""),
                                  rows.get<Text>(i, 2).value_or(""), rows.get<Text>(i, 3).value_or(""),
                                  rows.get<Text>(i, 4).value_or(""),
                                  rows.get<std::optional<int32_t>>(i, 5).value_or(0),
                                  rows.get<Time>(i, 6).value_or(base::Timestamp{}), rows.get<Time>(i, 7)});
  return found;
}

}  // namespace postrider::outbox
