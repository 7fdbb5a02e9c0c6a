#include "postrider/delivery/lane.hpp"

#include <algorithm>
#include <utility>

#include "postrider/base/check.hpp"

namespace postrider::delivery {

Lane::Lane(model::EndpointId endpoint_id, Home home, BufferTotals& totals)
    : endpoint(endpoint_id),
      bucket(home.bucket),
      epoch(home.epoch),
      buffers_{RowBuffer(totals), RowBuffer(totals)} {}

bool Lane::has_work() const {
  if (!away.empty()) return true;
  for (const RowBuffer& rows : buffers_)
    if (!rows.empty() || rows.may_have_more() || rows.is_fetching()) return true;
  return false;
}

bool Lane::is_known(model::DeliveryId id) const {
  if (std::find(away.begin(), away.end(), id) != away.end()) return true;
  for (const RowBuffer& buffer : buffers_)
    for (const Row& row : buffer.rows())
      if (row.id() == id) return true;
  return false;
}

void Lane::configure(std::shared_ptr<const LaneConfig> fresh, const Now& now) {
  const auto old = std::exchange(config, std::move(fresh));
  const bool was_strict = old && old->endpoint.is_strict();
  // What is in memory was taken in the other order. Rows that are away come back through put_back().
  if (was_strict != is_strict())
    buffer(Turn::first).restart(is_strict() ? RowBuffer::Order::strict : RowBuffer::Order::by_due);
  const auto limit = config->endpoint.rate_per_second;
  if (!limit)
    rate.reset();
  else if (rate)
    rate->set_rate(*limit, now.steady);
  else
    rate.emplace(*limit, now.steady);
  const bool resumed = old && old->mode != LaneConfig::Mode::send && config->mode == LaneConfig::Mode::send;
  const bool moved = old && old->url != config->url;
  if (resumed || moved) {
    breaker.reset();
    held_until = {};
    rejected_in_row = 0;
  }
}

Lane::Readiness Lane::readiness(Turn turn, const Now& now) {
  RowBuffer& rows = buffer(turn);
  if (rows.empty()) return {};
  if (!config || config->mode != LaneConfig::Mode::send || is_draining || is_gone) return {Wait::event};
  const int busy = is_strict() ? static_cast<int>(away.size()) : in_flight;
  const int max_in_flight = is_strict() ? 1 : config->endpoint.max_in_flight;
  // Left from before the endpoint became strict: these are older than anything with a position.
  const RowBuffer& older = buffer(Turn::retry);
  if (is_strict() && turn == Turn::first && (!older.empty() || older.may_have_more())) return {Wait::event};
  if (is_strict() && rows.may_have_sooner()) return {Wait::event};  // its head may be among what is fetched
  if (held_until > now.steady) return {Wait::time, held_until};
  if (breaker.is_open() && !breaker.is_probe_due(now.steady)) {
    if (breaker.next_probe_at() > now.steady) return {Wait::time, breaker.next_probe_at()};
    return {Wait::event};
  }
  if (busy >= breaker.allowed_in_flight(now.steady, max_in_flight)) return {Wait::event};
  const Row& row = next(turn, now);
  if (row.key.due_at > now.db) return {Wait::time, now.steady_of(row.key.due_at)};
  if (rate && rate->ready_at(now.steady) > now.steady) return {Wait::time, rate->ready_at(now.steady)};
  if (!row.event) return {Wait::body};
  return {Wait::ready, now.steady, breaker.is_open()};
}

// The first one, unless it has a place in an order that is not kept any more.
size_t Lane::soonest(const RowBuffer& buffer, const Now& now) {
  const RowBuffer::Rows& rows = buffer.rows();
  if (rows.front().key.position == 0 || rows.front().key.due_at <= now.db) return 0;
  const auto found = std::ranges::min_element(rows, {}, [](const Row& row) { return row.key.due_at; });
  return static_cast<size_t>(found - rows.begin());
}

// Probes go round the due rows, so that one poisonous delivery cannot keep a recovered endpoint shut.
size_t Lane::next_index(const RowBuffer& rows, const Now& now) const {
  if (is_strict()) return 0;
  if (!breaker.is_open()) return soonest(rows, now);
  size_t due = 0;
  while (due < rows.size() && rows.rows()[due].key.due_at <= now.db) ++due;
  return due == 0 ? 0 : probes_ % due;
}

const Row& Lane::next(Turn turn, const Now& now) const {
  const RowBuffer& rows = buffer(turn);
  return rows.rows()[next_index(rows, now)];
}

Row Lane::start(Turn turn, const Now& now) {
  if (rate) CHECK(rate->try_take(now.steady));
  Row row = buffer(turn).take(next_index(buffer(turn), now));
  if (breaker.is_open()) {
    breaker.start_probe();
    ++probes_;
  }
  ++in_flight;
  away.push_back(row.id());
  return row;
}

void Lane::settled(model::DeliveryId id) {
  const auto found = std::find(away.begin(), away.end(), id);
  CHECK(found != away.end());
  *found = away.back();
  away.pop_back();
}

}  // namespace postrider::delivery
