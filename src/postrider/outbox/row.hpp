// A row of the outbox on its way through the relay.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "postrider/base/result.hpp"
#include "postrider/pg/rows.hpp"
#include "postrider/publish/new_event.hpp"

namespace postrider::outbox {

struct Row {
  int64_t id = 0;
  int64_t xid = 0;
  bool has_own_id = false;  // the application chose the event's id
  publish::NewEvent event;  // with given_id and written_at; its data points into the answer it was read from
};

// The columns that late_rows, fresh_rows, failed_rows and listed_rows have in common.
std::vector<Row> read_rows(const pg::Rows& answer);

// Cuts white space around the data, which is no part of it, and finds what publish() in SQL does not see:
// more than JsonScanner::kDepthMax containers within each other. Empty: fine.
std::string check_data(Row& row);

struct Failure {
  int64_t id = 0;
  std::string error;
};

}  // namespace postrider::outbox
