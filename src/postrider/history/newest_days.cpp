#include "postrider/history/newest_days.hpp"

#include <algorithm>

#include "postrider/model/id_time.hpp"
#include "postrider/model/ids.hpp"

namespace postrider::history {

std::vector<base::Uuid> lower_bounds(const base::Uuid& before, const base::Uuid& from, base::Timestamp now) {
  constexpr std::chrono::days kNewest{1};  // touches two partitions
  const base::Timestamp newest =
      std::min(model::time_of(before), base::Timestamp(std::chrono::floor<std::chrono::milliseconds>(now)));
  if (newest.time_since_epoch() <= kNewest) return {from};
  const base::Uuid recent = model::id_floor(newest - kNewest);
  if (recent <= from) return {from};
  return {recent, from};
}

}  // namespace postrider::history
