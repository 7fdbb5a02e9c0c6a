#include "postrider/history/newest_days.hpp"

#include <algorithm>

#include "postrider/model/ids.hpp"

namespace postrider::history {

std::vector<base::Uuid> lower_bounds(const base::Uuid& before, const base::Uuid& from, base::Timestamp now) {
  constexpr std::chrono::days kNewest{1};  // touches two partitions
  int64_t before_ms = 0;
  for (size_t i = 0; i < 6; ++i) before_ms = before_ms << 8 | before.bytes[i];
  const auto now_ms = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch());
  const base::Timestamp newest(std::min(std::chrono::milliseconds(before_ms), now_ms));
  if (newest.time_since_epoch() <= kNewest) return {from};
  const base::Uuid recent = model::id_floor(newest - kNewest);
  if (recent <= from) return {from};
  return {recent, from};
}

}  // namespace postrider::history
