// A row of the outbox in the relay.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "postrider/base/result.hpp"
#include "postrider/pg/rows.hpp"
#include "postrider/publish/new_event.hpp"

namespace postrider::outbox {

struct OutboxRow {
  int64_t id = 0;
  int64_t xid = 0;
  bool has_own_id = false;  // the application chose the event's id
  publish::NewEvent event;  // with given_id and written_at; its data points into the rows it was read from
  // Found while reading it: publish() set it aside, or a column is null that must not be, or too large.
  std::optional<std::string> error;
};

// Of one row's data. Larger data is not even read.
inline constexpr int64_t kDataBytesMax = 16 << 20;

// Of late_rows, fresh_rows, failed_rows and listed_rows. The owner of another database may have changed its
// tables: any column but ID and transaction may be null.
std::vector<OutboxRow> read_rows(const pg::Rows& rows);

// The reason why the row can never be published as it is: it breaks a rule of all events, or its data is not
// JSON. Removes white space around the data.
std::optional<std::string> error_of(OutboxRow& row);

struct Failure {
  int64_t id = 0;
  std::string error;
  bool is_final = false;  // trying again cannot help: the row is set aside at once
};

}  // namespace postrider::outbox
