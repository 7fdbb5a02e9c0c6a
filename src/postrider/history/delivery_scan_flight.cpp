// Deliveries that the nodes report as in flight, newest first. These are few at any time, but a filter may
// drop most of them.
#include <algorithm>
#include <utility>

#include "postrider/history/delivery_scan_steps.hpp"

namespace postrider::history {

namespace {

constexpr int kRowsRead = 2'000;

// No value if the delivery has left the queue since the node reported it.
std::optional<Delivery> read_reported(const sql::queued_in_flight::Row& row) {
  if (!row.endpoint_id) return std::nullopt;
  struct Queued {
    base::Uuid id, endpoint_id, event_id;
    std::string_view tenant_id;
    int32_t attempts;
    base::Timestamp due_at, created_at;
    std::optional<base::Uuid> replay_id;
  };
  return read_queued(Queued{row.id, *row.endpoint_id, *row.event_id, *row.tenant_id, *row.attempts,
                            *row.due_at, *row.created_at, row.replay_id});
}

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
  const auto rows = co_await link.run(sql::queued_in_flight{.rows_read = kRowsRead,
                                                            .before = before,
                                                            .from = filter.from,
                                                            .tenant = filter.tenant,
                                                            .endpoint = endpoint});
  ScanChunk chunk;
  for (const auto& row : rows) {
    const std::string cursor = row.id.hex();
    if (row.is_edge) chunk.next = cursor;
    std::optional<Delivery> delivery = read_reported(row);
    if (!delivery) continue;
    chunk.deliveries.push_back(std::move(*delivery));
    chunk.cursors.push_back(cursor);
  }
  co_await add_histories(link, chunk.deliveries);
  co_return chunk;
}

}  // namespace postrider::history
