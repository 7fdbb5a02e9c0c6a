// The four scans of deliveries (delivery_scan.hpp). Each reads a limited number of rows.
#pragma once

#include "postrider/history/delivery_scan.hpp"

namespace postrider::history {

struct ScanChunk {
  std::vector<Delivery> deliveries;  // not all filters are applied yet
  std::vector<std::string> cursors;  // after each of them
  std::optional<std::string> next;   // after everything that was read; none: nothing is left
  DeliveryNames names;
};

// `look` counts the looks of one page. Each reads more rows than the previous one, so that the usual page is
// cheap and a rare filter gets far.
struct ScanFrom {
  std::string after;
  int look = 0;
};
// Each returns nothing if the cursor does not belong to this scan.
runtime::Task<std::optional<ScanChunk>> scan_by_time(pg::Link& link, const DeliveryFilter& filter,
                                                     const ScanFrom& from);
runtime::Task<std::optional<ScanChunk>> scan_by_lane(pg::Link& link, const DeliveryFilter& filter,
                                                     const std::string& after);
runtime::Task<std::optional<ScanChunk>> scan_in_flight(pg::Link& link, const DeliveryFilter& filter,
                                                       const std::string& after);
runtime::Task<std::optional<ScanChunk>> scan_by_event(pg::Link& link, const DeliveryFilter& filter,
                                                      const ScanFrom& from);

// Adds the last attempt to deliveries that were read from the queue only.
runtime::Task<void> add_histories(pg::Link& link, std::vector<Delivery>& deliveries);

}  // namespace postrider::history
