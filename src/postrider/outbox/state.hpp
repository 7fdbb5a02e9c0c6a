// The state of one outbox, read in the database where it is, and the repair of what was set aside.
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
  std::optional<std::string> relay;  // who relays it
  std::optional<base::Timestamp> relay_beat_at;
  std::optional<std::string> damage;  // what is missing in its tables, and how to repair it
};
pg::Batch state_batch();
OutboxState read_state(const std::vector<pg::Rows>& answers);

struct StuckRow {
  int64_t id = 0;
  std::string event_id, tenant_id, type, last_error;
  int32_t attempts = 0;
  base::Timestamp created_at{}, set_aside_at{};
};
// Behind row `after`, in order.
pg::Batch stuck_batch(int64_t after, int limit);
std::vector<StuckRow> read_stuck(const pg::Rows& rows);

// The rows, or all, are tried again at once, and four more times. Rows affected: how many.
pg::Batch release_batch(const std::optional<std::vector<int64_t>>& ids);

}  // namespace postrider::outbox
