// The matches of a range, a limited number of rows at a time, after a cursor.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "postrider/model/ids.hpp"
#include "postrider/pg/connection.hpp"
#include "postrider/pg/link.hpp"
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
  bool is_last = false;  // nothing is after `next`
};

struct Look {
  int rows_max = 2'000;        // to scan
  int candidates_max = 2'000;  // to return
};

// The largest ID, and the one after `id`.
base::Uuid last_uuid();
base::Uuid successor(base::Uuid id);

Cursor start_of(const Range& range);
runtime::Task<Found> find_candidates(pg::Link& link, const Range& range, Cursor from, Look look);
runtime::Task<Found> find_candidates(pg::Transaction& transaction, const Range& range, Cursor from,
                                     Look look);

}  // namespace postrider::replay
