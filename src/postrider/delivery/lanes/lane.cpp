#include "postrider/delivery/lanes/lane.hpp"

#include <algorithm>
#include <utility>

#include "postrider/base/check.hpp"

namespace postrider::delivery {

std::string_view label(WaitReason reason) {
  switch (reason) {
    case WaitReason::rate:
      return "rate";
    case WaitReason::in_flight_cap:
      return "in_flight_cap";
    case WaitReason::brake:
      break;
  }
  return "brake";
}

Lane::Lane(model::EndpointId endpoint_id, Home home, BufferTotals& totals, BreakerPolicy policy)
    : endpoint(endpoint_id),
      bucket(home.bucket),
      epoch(home.epoch),
      buffers_{RowBuffer(totals), RowBuffer(totals)},
      breaker_(policy) {}

bool Lane::has_work() const {
  if (!outstanding_.empty()) return true;
  for (const RowBuffer& rows : buffers_)
    if (!rows.empty() || rows.may_have_more() || rows.is_fetching()) return true;
  return false;
}

bool Lane::is_in_use() const {
  return has_work() || in_flight_ > 0 || is_sweeping_ || in_loader_.wants_config ||
         in_chooser_.is_listed[0] || in_chooser_.is_listed[1];
}

bool Lane::is_known(model::DeliveryId id) const {
  if (std::find(outstanding_.begin(), outstanding_.end(), id) != outstanding_.end()) return true;
  for (const RowBuffer& buffer : buffers_)
    for (const QueueRow& row : buffer.rows())
      if (row.id() == id) return true;
  return false;
}

void Lane::expect_more() {
  for (RowBuffer& rows : buffers_) rows.expect_more();
}

void Lane::drop_rows() {
  for (RowBuffer& rows : buffers_) rows.shrink(0);
}

void Lane::configure(std::shared_ptr<const LaneConfig> fresh, const Now& now) {
  const auto old = std::exchange(config_, std::move(fresh));
  const bool was_strict = old && old->endpoint.is_strict();
  // The rows in memory were taken in the other order. Outstanding rows return through put_back().
  if (was_strict != is_strict())
    buffer(Turn::first).restart(is_strict() ? RowBuffer::Order::strict : RowBuffer::Order::by_due);
  const auto limit = config_->endpoint.rate_per_second;
  if (!limit)
    rate_.reset();
  else if (rate_)
    rate_->set_rate(*limit, now.steady);
  else
    rate_.emplace(*limit, now.steady);
  const bool resumed = old && old->mode != LaneConfig::Mode::send && config_->mode == LaneConfig::Mode::send;
  const bool moved = old && old->url != config_->url;
  if (resumed || moved) {
    breaker_.reset();
    lift_hold();
    health_.rejected_in_row = 0;
  }
}

Lane::Readiness Lane::readiness(Turn turn, const Now& now) {
  RowBuffer& rows = buffer(turn);
  if (rows.empty()) return {};
  if (!config_ || config_->mode != LaneConfig::Mode::send || is_draining_ || is_gone_) return {Wait::event};
  const int busy = is_strict() ? static_cast<int>(outstanding_.size()) : in_flight_;
  const int max_in_flight = is_strict() ? 1 : config_->endpoint.max_in_flight;
  // Retries left from before the endpoint became strict are older than any row with a position.
  const RowBuffer& older = buffer(Turn::retry);
  if (is_strict() && turn == Turn::first && (!older.empty() || older.may_have_more())) return {Wait::event};
  if (is_strict() && rows.may_have_sooner()) return {Wait::event};  // its head may be in the next fetch
  if (held_until_ > now.steady) return {.wait = Wait::time, .until = held_until_, .reason = WaitReason::rate};
  if (breaker_.is_open() && !breaker_.is_probe_due(now.steady)) {
    if (breaker_.next_probe_at() > now.steady) return {Wait::time, breaker_.next_probe_at()};
    return {Wait::event};
  }
  if (busy >= breaker_.allowed_in_flight(now.steady, max_in_flight)) {
    if (is_strict() || breaker_.is_open()) return {Wait::event};
    return {.wait = Wait::event, .reason = WaitReason::in_flight_cap};
  }
  const QueueRow& row = next(turn, now);
  if (row.key.due_at > now.db) return {Wait::time, now.steady_of(row.key.due_at)};
  if (rate_ && rate_->ready_at(now.steady) > now.steady)
    return {.wait = Wait::time, .until = rate_->ready_at(now.steady), .reason = WaitReason::rate};
  if (!row.event) return {Wait::body};
  return {Wait::ready, now.steady, breaker_.is_open()};
}

// The first row, unless it has a position from an ordering that no longer applies.
size_t Lane::soonest(const RowBuffer& buffer, const Now& now) {
  const RowBuffer::Rows& rows = buffer.rows();
  if (rows.front().key.position == 0 || rows.front().key.due_at <= now.db) return 0;
  const auto found = std::ranges::min_element(rows, {}, [](const QueueRow& row) { return row.key.due_at; });
  return static_cast<size_t>(found - rows.begin());
}

// Probes go round the due rows, so that one delivery that always fails cannot keep the breaker open.
size_t Lane::next_index(const RowBuffer& rows, const Now& now) const {
  if (is_strict()) return 0;
  if (!breaker_.is_open()) return soonest(rows, now);
  size_t due = 0;
  while (due < rows.size() && rows.rows()[due].key.due_at <= now.db) ++due;
  return due == 0 ? 0 : probes_ % due;
}

const QueueRow& Lane::next(Turn turn, const Now& now) const {
  const RowBuffer& rows = buffer(turn);
  return rows.rows()[next_index(rows, now)];
}

QueueRow Lane::start(Turn turn, const Now& now) {
  if (rate_) rate_->try_take(now.steady);
  QueueRow row = buffer(turn).take(next_index(buffer(turn), now));
  if (breaker_.is_open()) {
    breaker_.start_probe();
    ++probes_;
  }
  ++in_flight_;
  add_outstanding(row.id());
  return row;
}

void Lane::release(model::DeliveryId id) {
  const auto found = std::find(outstanding_.begin(), outstanding_.end(), id);
  CHECK(found != outstanding_.end());
  *found = outstanding_.back();
  outstanding_.pop_back();
}

}  // namespace postrider::delivery
