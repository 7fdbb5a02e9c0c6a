// What nodes say they are sending, newest first. There is little of it at any time, but a filter may drop
// most.
#include <algorithm>

#include "postrider/history/deliveries.sql.hpp"
#include "postrider/history/delivery_scan_steps.hpp"

namespace postrider::history {

namespace {

constexpr int kLookedAt = 2'000;

}  // namespace

runtime::Task<std::optional<ScanChunk>> scan_in_flight(pg::Link& link, const DeliveryFilter& filter,
                                                       const std::string& after) {
  base::Uuid before = filter.before;
  if (!after.empty()) {
    const auto last = base::Uuid::from_hex(after);
    if (!last) co_return std::nullopt;
    before = std::min(before, *last);
  }
  std::optional<base::Uuid> endpoint;
  if (filter.endpoint) endpoint = filter.endpoint->id.uuid;
  pg::Params params(before, filter.from, kLookedAt, filter.tenant, endpoint);
  const pg::Rows rows = co_await link.run_one(sql::live_in_flight, std::move(params));
  ScanChunk chunk;
  for (size_t row = 0; row < rows.size(); ++row) {
    const std::string cursor = rows.get<base::Uuid>(row, 0).hex();
    if (rows.get<bool>(row, 8)) chunk.next = cursor;
    if (!rows.get<std::optional<base::Uuid>>(row, 1)) continue;  // settled meanwhile
    chunk.deliveries.push_back(read_live(rows, row));
    chunk.cursors.push_back(cursor);
  }
  co_await add_histories(link, chunk.deliveries);
  co_return chunk;
}

}  // namespace postrider::history
