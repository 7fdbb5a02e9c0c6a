#include "postrider/delivery/lanes/seen_deliveries.hpp"

namespace postrider::delivery {

void SeenDeliveries::fetched(const QueueRow& row, const Now& now) {
  if (row.attempts > 0 || is_too_old(row, now.db)) return;
  while (!fetched_order_.empty() &&
         (fetched_order_.size() >= kFetchedMax || now.steady - fetched_order_.front().first > kFetchedKept)) {
    fetched_.erase(fetched_order_.front().second);
    fetched_order_.pop_front();
  }
  if (fetched_.insert(row.id()).second) fetched_order_.emplace_back(now.steady, row.id());
}

void SeenDeliveries::forget_canceled(base::SteadyTime now) {
  std::erase_if(canceled_, [now](const auto& entry) { return now - entry.second > kCanceledKept; });
}

}  // namespace postrider::delivery
