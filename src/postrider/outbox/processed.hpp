// Rows that were processed and are still kept: the copies of events that postrider's own database has lost.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "postrider/base/time.hpp"
#include "postrider/pg/batch.hpp"
#include "postrider/pg/rows.hpp"

namespace postrider::outbox {

struct ProcessedRow {
  int64_t id = 0;
  base::Timestamp processed_at{};
  std::string tenant_id, event_id;
};

struct ProcessedSearch {
  base::Timestamp since{}, until{};  // when the row was written
  std::optional<std::string> tenant{};
  base::Timestamp after_time{};
  int64_t after_row = 0;
  int rows_max = 500;
};
pg::Batch processed_batch(const ProcessedSearch& search);
std::vector<ProcessedRow> read_processed(const pg::Rows& rows);

// The relay publishes them again, under the same ids.
pg::Batch process_again_batch(const std::vector<int64_t>& ids);

}  // namespace postrider::outbox
