// The state of change data capture of one outbox, and switching it, in the outbox's database.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "postrider/base/time.hpp"
#include "postrider/pg/batch.hpp"
#include "postrider/pg/rows.hpp"
#include "postrider/registry/caller.hpp"

namespace postrider::outbox {

struct CaptureState {
  std::string mode;   // table or cdc
  std::string state;  // off, starting, on, draining, fallback or impossible
  std::optional<std::string> reason;
  base::Timestamp since{};
  std::optional<base::Timestamp> lost_at;  // when a slot was last found gone
  int64_t bytes_max = 0;
  int64_t behind_bytes = 0;
  int64_t retained_bytes = 0;
  std::optional<std::string> slot;
};

struct CaptureChange {
  std::optional<std::string> mode;
  std::optional<int64_t> bytes_max;
};

// Applies the change, if any, and queries the state: the last result of the batch.
pg::Batch capture_state_batch(const CaptureChange& change = {});
// For the audit log, in postrider's own database.
pg::Batch capture_note(const registry::Caller& caller, const std::string& outbox,
                       const CaptureChange& change);
// Throws pg::Error when the tables are damaged.
CaptureState read_capture_state(const pg::Rows& last);

}  // namespace postrider::outbox
