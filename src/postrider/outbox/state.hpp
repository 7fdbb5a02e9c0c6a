// The state of one outbox, read in the database where it is, and the repair of rows that were set aside.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "postrider/base/time.hpp"
#include "postrider/pg/batch.hpp"
#include "postrider/pg/rows.hpp"

namespace postrider::outbox {

struct OutboxState {
  std::optional<base::Timestamp> oldest_at;  // of what waits to be published
  int64_t stuck = 0;
  std::optional<std::string> relay;  // name of its relay
  std::optional<base::Timestamp> relay_beat_at;
  std::optional<std::string> damage;  // missing rows in its tables, and how to repair them
};
pg::Batch state_batch();
OutboxState read_state(const std::vector<pg::Rows>& answers);

struct StuckRow {
  int64_t id = 0;
  std::string event_id, tenant_id, type, last_error;
  int32_t attempts = 0;
  base::Timestamp created_at{}, set_aside_at{};
  std::optional<int32_t> cut_from_bytes;  // only the beginning of its data was kept
};
// After row `after`, in order.
pg::Batch stuck_batch(int64_t after, int limit);
std::vector<StuckRow> read_stuck(const pg::Rows& rows);

// The rows, or all, are validated and tried again at once, and four more times. A row whose data was cut is
// never released: one of `ids` prevents the release of the others, too.
pg::Batch release_batch(const std::optional<std::vector<int64_t>>& ids);
inline constexpr int32_t kCutRowsMax = 1'000;
struct Released {
  int64_t rows = 0;
  std::vector<int64_t> cut;  // up to kCutRowsMax
};
Released read_released(const std::vector<pg::Rows>& results);

// Deletes the rows, or all that were set aside. Rows affected: how many.
pg::Batch discard_batch(const std::optional<std::vector<int64_t>>& ids);

// A row whose last attempt failed; it is tried again.
struct FailingRow {
  int64_t id = 0;
  std::string event_id, tenant_id, type, last_error;
  int32_t attempts = 0;
  base::Timestamp created_at{};
  std::optional<base::Timestamp> next_attempt_at;
};
inline constexpr int64_t outbox_counted_max = 10'000;
struct Waiting {
  int64_t waiting = 0, failing = 0;  // counted up to outbox_counted_max
  std::vector<FailingRow> failing_rows;
};
// The state of the outbox for people: state_batch(), and then its setting and the waiting rows.
pg::Batch status_batch();
// "refuse" or "set_aside"; none when the tables are damaged.
std::optional<std::string> read_on_invalid(const std::vector<pg::Rows>& results);
pg::Batch set_on_invalid_batch(const std::string& on_invalid);
Waiting read_waiting(const std::vector<pg::Rows>& results);

}  // namespace postrider::outbox
