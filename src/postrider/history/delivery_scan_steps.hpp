// The four ways to walk over deliveries (delivery_scan.hpp). Each reads a limited number of rows.
#pragma once

#include "postrider/history/delivery_scan.hpp"

namespace postrider::history {

struct ScanChunk {
  std::vector<Delivery> deliveries;  // not filtered by everything yet
  std::vector<std::string> cursors;  // behind each of them
  std::optional<std::string> next;   // behind all that was looked at; none: nothing is left
  DeliveryNames names;
};

// Nothing: the cursor is not one of this walk. `look` counts the looks of one page: each takes more rows than
// the one before, so that the usual page is cheap and a rare filter gets far.
struct ScanFrom {
  std::string after;
  int look = 0;
};
runtime::Task<std::optional<ScanChunk>> scan_by_time(pg::Link& link, const DeliveryFilter& filter,
                                                     const ScanFrom& from);
runtime::Task<std::optional<ScanChunk>> scan_by_lane(pg::Link& link, const DeliveryFilter& filter,
                                                     const std::string& after);
runtime::Task<std::optional<ScanChunk>> scan_in_flight(pg::Link& link, const DeliveryFilter& filter,
                                                       const std::string& after);
runtime::Task<std::optional<ScanChunk>> scan_by_event(pg::Link& link, const DeliveryFilter& filter,
                                                      const ScanFrom& from);

// Adds to each what was tried last, for deliveries whose history was not read with them.
runtime::Task<void> add_histories(pg::Link& link, std::vector<Delivery>& deliveries);

}  // namespace postrider::history
