// Lists of attempts over a history of any length: the newest delivery first, and of each delivery its last
// attempt first. A page looks at a limited number of rows and says where the next one begins, also when it
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
  std::optional<base::Timestamp> since, until;  // when the attempt began
};

struct AttemptKey {
  base::Uuid delivery;
  int number = 0;  // 0: the note of a delivery that ended without an exchange, which is its last

  int rank() const { return number == 0 ? INT_MAX : number; }
};

struct AttemptPage {
  std::vector<AttemptKey> attempts;
  std::optional<std::string> next;  // nothing is left: none
};

runtime::Task<base::Result<AttemptPage, BadCursor>> scan_attempts(pg::Link& link, AttemptFilter filter);

}  // namespace postrider::history
