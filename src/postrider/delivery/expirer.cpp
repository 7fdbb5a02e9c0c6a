#include "postrider/delivery/expirer.hpp"

#include <algorithm>
#include <utility>

#include "postrider/delivery/lanes/fetch.sql.hpp"
#include "postrider/delivery/lanes/read_row.hpp"
#include "postrider/pg/error.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::delivery {

namespace {

using namespace std::chrono_literals;

constexpr auto kPassInterval = 2s;
constexpr auto kSearchInterval = 10s;
constexpr int kRowsPerPage = 500;   // that a search reads at a time
constexpr auto kDatabaseWait = 5s;  // the next search tries again

// All rows in memory ended, and the next ones are not there yet.
bool is_being_refilled(const Lane& lane) {
  return std::ranges::any_of(kBothTurns, [&lane](Turn turn) {
    const RowBuffer& buffer = lane.buffer(turn);
    return buffer.is_fetching() || (buffer.empty() && buffer.may_have_more());
  });
}

}  // namespace

Expirer::Expirer(ExpirerTools tools) : tools_(tools), timer_(tools.loop), room_(tools.loop) {
  timer_.call_after(kPassInterval, [this] { pass(); });
}

// Rows of other lanes are kept, and their clock stands still, or the sweeper ends them.
bool Expirer::is_open(const Lane& lane) const {
  const bool is_ours = !is_stopping_ && !lane.is_gone() && !lane.is_draining();
  return is_ours && lane.config() && lane.config()->mode == LaneConfig::Mode::send;
}

void Expirer::pass() {
  timer_.call_after(kPassInterval, [this] { pass(); });
  if (!tools_.sender.look_at_service()) return;
  const auto at = base::BootClock::now();
  const bool is_search_due = !is_searching_ && at - searched_at_ >= kSearchInterval;
  for (const auto& [id, lane] : tools_.lanes.lanes()) {
    if (!is_open(*lane)) continue;
    if (lane->rows() > 0) list(lane);
    if (is_search_due && lane->buffer(Turn::retry).may_have_more()) searches_.push_back(lane);
  }
  pump_soon();
  if (!is_search_due || searches_.empty()) return;
  searched_at_ = at;
  is_searching_ = true;
  tasks_.spawn(search_all());
}

// ── rows in memory ──

void Expirer::list(const LanePtr& lane) {
  if (listed_.contains(lane.get())) return;
  const Expiry expiry = tools_.sender.expiry_of(*lane);
  const auto is_expired = [&](const QueueRow& row) { return expiry.is_expired(row.created_at); };
  const auto has_expired = [&](Turn turn) {
    return std::ranges::any_of(lane->buffer(turn).rows(), is_expired);
  };
  if (!std::ranges::any_of(kBothTurns, has_expired)) return;
  listed_.insert(lane.get());
  turns_.push_back(lane);
}

void Expirer::changed(const LanePtr& lane) {
  room_.notify();
  // Not only at the next pass: a backlog has many times the rows that fit into memory.
  if (lane->is_expiring_ && is_open(*lane)) {
    list(lane);
    lane->is_expiring_ = listed_.contains(lane.get()) || is_being_refilled(*lane);
  }
  if (!turns_.empty()) pump_soon();
}

void Expirer::pump_soon() {
  if (is_stopping_ || turns_.empty() || std::exchange(is_pump_posted_, true)) return;
  tools_.loop.post([this] {
    is_pump_posted_ = false;
    pump();
  });
}

void Expirer::pump() {
  while (!turns_.empty() && tools_.sender.expiring() < kExpiriesMax && tools_.sender.look_at_service()) {
    const LanePtr lane = std::move(turns_.front());
    turns_.pop_front();
    if (is_open(*lane) && expire_some(lane, kRowsPerTurn)) {
      turns_.push_back(lane);
      continue;
    }
    listed_.erase(lane.get());
  }
}

bool Expirer::expire_some(const LanePtr& lane, size_t most) {
  const Expiry expiry = tools_.sender.expiry_of(*lane);
  size_t ended = 0;
  for (const Turn turn : kBothTurns) {
    RowBuffer& buffer = lane->buffer(turn);
    for (size_t i = 0; i < buffer.size();) {
      if (!expiry.is_expired(buffer.rows()[i].created_at)) {
        ++i;
        continue;
      }
      if (ended == most) return true;
      tools_.sender.expire(lane, buffer.take(i));
      ++ended;
    }
  }
  // The rows behind them are read when the end of these is written.
  lane->is_expiring_ = ended > 0;
  return false;
}

// ── rows in the table ──

struct Expirer::Page {
  std::vector<QueueRow> expired;
  RowKey last;
  bool is_last = true;
};

runtime::Task<void> Expirer::search_all() {
  while (!searches_.empty() && !is_stopping_) {
    LanePtr lane = std::move(searches_.front());
    searches_.pop_front();
    auto searching = search(std::move(lane));
    co_await searching;
  }
  searches_.clear();
  is_searching_ = false;
}

runtime::Task<void> Expirer::search(LanePtr lane) {
  RowKey after;
  bool is_last = false;
  while (!is_last && is_open(*lane)) {
    if (tools_.sender.expiring() >= kExpiriesMax) {
      co_await room_.wait_for(kPassInterval);
      continue;
    }
    if (!tools_.sender.look_at_service()) co_return;
    const base::Timestamp cutoff = tools_.sender.expiry_of(*lane).cutoff();
    auto reading = read_page(lane, after, cutoff);
    Page page = co_await reading;
    is_last = page.is_last;
    after = page.last;
    if (!is_open(*lane)) co_return;
    for (QueueRow& row : page.expired) expire_found(lane, std::move(row));
  }
}

runtime::Task<Expirer::Page> Expirer::read_page(LanePtr lane, RowKey after, base::Timestamp cutoff) {
  Page page;
  try {
    pg::Batch read;
    const auto pending = read.add(
        sql::old_retries{.bucket = lane->bucket,
                         .endpoint = lane->endpoint.uuid,
                         .position = after.position,
                         .due_at = after.due_at == base::Timestamp{} ? pg::minus_infinity : after.due_at,
                         .id = after.id.uuid,
                         .rows_max = kRowsPerPage,
                         .created_up_to = cutoff});
    const auto deadline = base::BootClock::now() + kDatabaseWait;
    pg::Results results = co_await tools_.link.run(std::move(read), deadline);
    for (const auto& found : results.take(pending)) {
      QueueRow row = read_row(found);
      if (found.place == kRowsPerPage) {
        page.is_last = false;
        page.last = row.key;
      }
      if (row.created_at <= cutoff) page.expired.push_back(std::move(row));
    }
  } catch (const pg::Error& error) {
    telemetry::log_warn("expiry_search_failed").field("error", error.what());
    page = {};
  }
  co_return page;
}

// It may have been sent, or read into memory, since the page was asked for.
void Expirer::expire_found(const LanePtr& lane, QueueRow row) {
  if (!tools_.sender.expiry_of(*lane).is_expired(row.created_at)) return;
  if (auto known = lane->buffer(Turn::retry).remove(row.id()))
    tools_.sender.expire(lane, std::move(*known));
  else if (!lane->is_known(row.id()))
    tools_.sender.expire(lane, std::move(row));
}

// ── ending ──

void Expirer::abandon() {
  is_stopping_ = true;
  timer_.cancel();
  room_.notify();
}

runtime::Task<void> Expirer::stop() {
  abandon();
  co_await tasks_.join();
  runtime::Yield turn{tools_.loop};
  while (is_pump_posted_) co_await turn;
}

}  // namespace postrider::delivery
