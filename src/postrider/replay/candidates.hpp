// What a range matches, a bounded number of rows at a time, behind a cursor.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "postrider/model/ids.hpp"
#include "postrider/pg/batch.hpp"
#include "postrider/pg/rows.hpp"
#include "postrider/replay/request.hpp"

namespace postrider::replay {

struct Candidate {
  base::Uuid event;
  base::Uuid endpoint;
  std::optional<base::Uuid> origin;  // the dead letter it comes from
};

struct Found {
  std::vector<Candidate> candidates;
  Cursor next;
  bool is_last = false;  // nothing is behind `next`
};

struct Look {
  int rows_max = 2'000;        // to look at
  int candidates_max = 2'000;  // to return
};

// The largest id there is, and the one after `id`.
base::Uuid last_uuid();
base::Uuid successor(base::Uuid id);

Cursor start_of(const Range& range);
void add_search(pg::Batch& batch, const Range& range, const Cursor& from, const Look& look);
Found read_found(const pg::Rows& rows, const Range& range, const Cursor& from, const Look& look);

}  // namespace postrider::replay
