// Lists of attempts over a history of any length: the newest delivery first, and of each delivery its last
// attempt first. A page reads a limited number of rows and returns where the next one starts, even if it
// found little.
#pragma once

#include <climits>
#include <optional>
#include <string>
#include <vector>

#include "postrider/history/delivery_scan.hpp"

namespace postrider::history {

struct AttemptFilter {
  DeliveryFilter which;  // tenant, endpoint, event, type, limit and cursor
  std::optional<std::string> outcome, error;
  std::optional<int> status_code;
  std::optional<base::Timestamp> since, until;  // when the attempt started
};

struct AttemptKey {
  base::Uuid delivery;
  int number = 0;  // 0 records that the delivery ended without a request, and is the last

  int rank() const { return number == 0 ? INT_MAX : number; }
};

struct AttemptPage {
  std::vector<AttemptKey> attempts;
  std::optional<std::string> next;  // none: this is the last page
};

runtime::Task<base::Result<AttemptPage, BadCursor>> scan_attempts(pg::Link& link, AttemptFilter filter);

}  // namespace postrider::history
