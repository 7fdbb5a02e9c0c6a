// Lists of attempts over a history of any length: the newest delivery first, and of each delivery its last
// attempt first. A page reads a limited number of rows and returns where the next one starts, even if it
// found little.
#pragma once

#include <climits>
#include <compare>
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
  // As in the table: 0 records that the delivery ended without a request, and is the last; a negative number
  // is a failed probe.
  int number = 0;
  int probed = 0;  // of a failed probe: the attempt that it is shown with, and before which it comes

  struct Rank {
    int attempt = 0, probe = 0;
    auto operator<=>(const Rank&) const = default;
  };
  Rank rank() const {
    if (number < 0) return {probed, -number};
    return {number == 0 ? INT_MAX : number, INT_MAX};
  }
};

struct AttemptPage {
  std::vector<AttemptKey> attempts;
  std::optional<std::string> next;  // none: this is the last page
};

runtime::Task<base::Result<AttemptPage, BadCursor>> scan_attempts(pg::Link& link, AttemptFilter filter);

}  // namespace postrider::history
