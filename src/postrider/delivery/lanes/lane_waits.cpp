#include "postrider/delivery/lanes/lane_waits.hpp"

namespace postrider::delivery {

namespace {

std::optional<WaitReason> reason_of(Lane& lane, Turn turn, Chooser& chooser, const Now& now) {
  if (lane.buffer(turn).empty() || lane.next(turn, now).key.due_at + LaneWaits::kAge > now.db) return {};
  const Lane::Readiness readiness = lane.readiness(turn, now);
  if (readiness.wait != Lane::Wait::ready) return readiness.reason;
  return chooser.reason_to_wait(lane, turn, now.steady);
}

}  // namespace

std::vector<LaneWait> LaneWaits::sample(const LaneTable::Lanes& lanes, Chooser& chooser, const Now& now) {
  std::vector<LaneWait> waits;
  size_t added = 0;
  for (const auto& [id, lane] : lanes)
    for (const Turn turn : kBothTurns) {
      auto& [seen, noted] = lane->in_waits_[static_cast<size_t>(turn)];
      const std::optional<WaitReason> reason = reason_of(*lane, turn, chooser, now);
      const bool has_room = noted || reported_ + added < kMax;
      if (reason == seen && reason != noted && has_room) {
        if (!noted) ++added;
        noted = reason;
      }
      seen = reason;
      if (noted) waits.push_back({lane->endpoint, turn == Turn::retry, lane->bucket, lane->epoch, *noted});
    }
  reported_ = waits.size();
  return waits;
}

}  // namespace postrider::delivery
