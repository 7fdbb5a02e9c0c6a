// Deliveries whose rows must not be loaded into memory when they arrive.
//
// A fetch can return a row that this node has just published before its handoff arrives. Taking both
// would send the delivery twice. A row that was canceled during a fetch or a handoff can also still
// arrive.
#pragma once

#include <deque>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "postrider/delivery/lanes/lane.hpp"

namespace postrider::delivery {

class SeenDeliveries {
 public:
  static constexpr std::chrono::seconds kFetchedKept{10};
  static constexpr std::chrono::seconds kCanceledKept{30};  // longer than any fetch
  static constexpr size_t kFetchedMax = 100'000;

  void fetched(const QueueRow& row, const Now& now);
  bool was_fetched(model::DeliveryId id) const { return fetched_.contains(id); }
  // A handoff that is this late may already have been fetched, sent and forgotten here.
  static bool is_too_old(const QueueRow& row, base::Timestamp now) {
    return now - row.created_at > kFetchedKept;
  }

  void canceled(model::DeliveryId id, base::SteadyTime now) { canceled_[id] = now; }
  bool was_canceled(model::DeliveryId id) const { return canceled_.contains(id); }
  void forget_canceled(base::SteadyTime now);

 private:
  std::unordered_set<model::DeliveryId> fetched_;
  std::deque<std::pair<base::SteadyTime, model::DeliveryId>> fetched_order_;
  std::unordered_map<model::DeliveryId, base::SteadyTime> canceled_;
};

}  // namespace postrider::delivery
