#include "postrider/outbox/processed.hpp"

#include "postrider/outbox/processed.sql.hpp"

namespace postrider::outbox {

pg::Batch processed_batch(const ProcessedSearch& search) {
  pg::Batch batch;
  batch.with(sql::processed_rows, search.since, search.until, search.tenant, search.after_time,
             search.after_row, int32_t{search.rows_max});
  return batch;
}

std::vector<ProcessedRow> read_processed(const pg::Rows& rows) {
  using Text = std::optional<std::string>;
  std::vector<ProcessedRow> found;
  for (size_t i = 0; i < rows.size(); ++i)
    found.push_back({rows.get<int64_t>(i, 0), rows.get<base::Timestamp>(i, 1),
                     rows.get<Text>(i, 2).value_or(""), rows.get<Text>(i, 3).value_or("")});
  return found;
}

pg::Batch process_again_batch(const std::vector<int64_t>& ids) {
  pg::Batch batch;
  batch.with(sql::process_again, ids);
  return batch;
}

}  // namespace postrider::outbox
