// Lists read the newest rows first, and the newest days usually fill a page. Postgres plans a statement over
// all partitions between its bounds: about 0.2 ms for the newest days, 3 ms for a month. Pure.
#pragma once

#include <vector>

#include "postrider/base/time.hpp"
#include "postrider/base/uuid.hpp"

namespace postrider::history {

// The lower bounds to read with, one after another, until a page is full: rows have ids below `before` and
// from `from` on. The last one is always `from`.
std::vector<base::Uuid> lower_bounds(const base::Uuid& before, const base::Uuid& from, base::Timestamp now);

}  // namespace postrider::history
