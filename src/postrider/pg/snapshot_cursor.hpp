// The rows that were visible at one moment, so that the next read can select the others: rows with
// xid >= xmax or xid = any(in_progress), whatever order their transactions committed in. "Id greater than the
// last one" misses transactions that commit late.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace postrider::pg {

struct SnapshotCursor {
  uint64_t xmax = 0;
  std::vector<std::string> in_progress;

  // pg_current_snapshot()::text, "xmin:xmax:xip,xip".
  static SnapshotCursor parse(std::string_view text);
};

}  // namespace postrider::pg
