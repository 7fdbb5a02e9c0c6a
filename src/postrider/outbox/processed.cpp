#include "postrider/outbox/processed.hpp"

#include "postrider/outbox/processed.sql.hpp"

namespace postrider::outbox {

pg::Batch processed_batch(const ProcessedSearch& search) {
  return pg::Batch::of(sql::processed_rows{.after_time = search.after_time,
                                           .after_id = search.after_row,
                                           .since = search.since,
                                           .until = search.until,
                                           .tenant = search.tenant,
                                           .rows_max = search.rows_max});
}

std::vector<ProcessedRow> read_processed(const pg::Rows& rows) {
  std::vector<ProcessedRow> found;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto row = sql::processed_rows::Row::read(rows, i);
    found.push_back({row.id, row.processed_at, std::string(row.tenant_id.value_or("")),
                     std::string(row.public_id.value_or(""))});
  }
  return found;
}

pg::Batch process_again_batch(const std::vector<int64_t>& ids) {
  return pg::Batch::of(sql::process_again{.ids = ids});
}

}  // namespace postrider::outbox
