#include "postrider/delivery/lanes/memory_budget.hpp"

#include <algorithm>

namespace postrider::delivery {

bool MemoryBudget::has_room(const RowBuffer& buffer) const {
  if (buffer.empty()) return true;
  return buffer.size() < limits_.lane_rows_max && buffer.body_bytes() < limits_.lane_bytes_max &&
         totals_.rows < limits_.rows_max && totals_.body_bytes < limits_.body_bytes_max;
}

bool MemoryBudget::has_room_for_bodies(const RowBuffer& buffer) const {
  return totals_.body_bytes < limits_.body_bytes_max && buffer.body_bytes() < limits_.lane_bytes_max;
}

size_t MemoryBudget::room_for_rows(const RowBuffer& buffer) const {
  const size_t of_lane = limits_.lane_rows_max - std::min(limits_.lane_rows_max, buffer.size());
  const size_t of_shard = limits_.rows_max - std::min(limits_.rows_max, totals_.rows);
  const size_t room = std::min(of_lane, of_shard);
  // At least two, or none: a fetch starts at its cursor, and a row that is already known is no progress.
  if (room >= 2) return room;
  return buffer.empty() ? 2 : 0;
}

size_t MemoryBudget::make_room(RowBuffer& buffer) const {
  if (buffer.may_have_sooner()) buffer.shrink(limits_.lane_rows_max / kRefillPart);
  if (buffer.may_have_sooner() && room_for_rows(buffer) == 0) buffer.shrink(0);
  return room_for_rows(buffer);
}

bool MemoryBudget::needs_rows(const RowBuffer& buffer, bool is_resting) const {
  if (!buffer.may_have_more() || buffer.is_fetching()) return false;
  if (buffer.may_have_sooner()) return true;
  return !is_resting && is_low(buffer.size()) && room_for_rows(buffer) > 0;
}

void MemoryBudget::rest(RowBuffer& buffer) const {
  buffer.drop_bodies();
  if (is_short_of_rows() && buffer.size() > kRowsResting) buffer.shrink(kRowsResting);
}

}  // namespace postrider::delivery
