// Rows that outlive their day: events, attempts and dead letters that a pending delivery, a replay or an
// unresolved dead letter still needs. Before a day is detached, its needed rows are moved to the kept tables
// (event_kept and so on), which are partitions of the same parents. Rows that became needed in the meantime
// are copied from the detached table. Kept rows are deleted when nothing needs them any more. The cost
// depends on the number of kept rows only.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "postrider/base/uuid.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::upkeep {

struct Day {
  std::string parent, name, date;  // "event", "event_20260408", "2026-04-08"
  base::Uuid low, high;            // its IDs: from low on, below high
  bool is_attached = false;
  bool is_detaching = false;  // and was interrupted
};

// Moves the needed rows of an attached day. Returns how many. Throws pg::Error, as all of these.
runtime::Task<int64_t> move_needed(pg::Link& link, Day day);
// Copies the needed rows of a detached day that are not kept yet; `copy` is the command for it, with IDs as
// $1.
runtime::Task<int64_t> copy_needed(pg::Link& link, Day day, std::string copy);

struct KeptTimes {
  std::chrono::seconds events{0}, attempts{0};
};
// From now on nothing older is replayed, so fewer and fewer rows of older days are needed.
runtime::Task<void> raise_kept_since(pg::Link& link, KeptTimes times);
// Deletes kept rows, keys and rows of `replayed` that nothing needs any more. Returns how many.
runtime::Task<int64_t> trim_kept(pg::Link& link, KeptTimes times);

}  // namespace postrider::upkeep
