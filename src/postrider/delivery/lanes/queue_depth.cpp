#include "postrider/delivery/lanes/queue_depth.hpp"

#include <algorithm>

namespace postrider::delivery {

namespace {

// A buffer by due time has its due rows first. In a strict one, a head that is due later delays all.
size_t count_due(const RowBuffer& buffer, bool is_strict, base::Timestamp now) {
  const RowBuffer::Rows& rows = buffer.rows();
  if (rows.empty()) return 0;
  if (is_strict) return rows.front().key.due_at <= now ? rows.size() : 0;
  const auto later =
      std::ranges::upper_bound(rows, now, {}, [](const QueueRow& row) { return row.key.due_at; });
  return static_cast<size_t>(later - rows.begin());
}

}  // namespace

void QueueDepth::add(const Lane& lane, base::Timestamp now, bool is_all_paused) {
  const auto& config = lane.config();
  const bool is_held = config && !config->held_reason().empty();
  if (is_held) ++lanes_held;
  if (is_held) {
    held += lane.rows();
    return;
  }
  if (is_all_paused || (config && config->mode == LaneConfig::Mode::hold)) {
    paused += lane.rows();
    return;
  }
  for (const Turn turn : kBothTurns) {
    const RowBuffer& buffer = lane.buffer(turn);
    const size_t due = count_due(buffer, lane.is_strict(), now);
    retrying += buffer.size() - due;
    if (due == 0) continue;
    if (lane.breaker().is_open()) {
      breaker += due;
      continue;
    }
    pending += due;
    const double waiting = std::chrono::duration<double>(now - buffer.front()->key.due_at).count();
    oldest_pending_seconds = std::max(oldest_pending_seconds, waiting);
  }
}

QueueDepth& QueueDepth::operator+=(const QueueDepth& other) {
  pending += other.pending;
  retrying += other.retrying;
  breaker += other.breaker;
  paused += other.paused;
  held += other.held;
  lanes_held += other.lanes_held;
  oldest_pending_seconds = std::max(oldest_pending_seconds, other.oldest_pending_seconds);
  return *this;
}

}  // namespace postrider::delivery
