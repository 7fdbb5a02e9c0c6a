#include "postrider/delivery/settle/sweeper.hpp"

#include <utility>

#include "postrider/delivery/settle/retry_pause.hpp"
#include "postrider/delivery/settle/sweep.sql.hpp"
#include "postrider/pg/error.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::delivery {

namespace {

using namespace std::chrono_literals;
using Mode = LaneConfig::Mode;

constexpr int kRowsPerPage = 500;
constexpr auto kLongWait = 1h;  // ended by an event
constexpr auto kRetryPause = 200ms;
constexpr auto kRetryPauseMax = 30s;  // a statement that Postgres rejects may be rejected for hours
constexpr auto kDatabaseWait = 5s;    // then it is repeated, so that a stop does not wait for it
constexpr auto kCanceledWithAll = "canceled with all that was pending for the endpoint";

// Removes the next rows of the lane.
pg::Pending<sql::sweep_older> add_page(pg::Batch& out, const Lane& lane, model::NodeId node) {
  const LaneConfig& config = *lane.config();
  const base::Uuid endpoint = lane.endpoint.uuid;
  switch (config.mode) {
    case Mode::clear: {
      const auto before = *config.endpoint.cancel_before;
      const bool is_by_person = !config.endpoint.cancel_reason;  // only retention gives one
      const auto page = out.add(
          sql::sweep_older{.bucket = lane.bucket,
                           .endpoint = endpoint,
                           .before = before,
                           .with_scheduled = is_by_person,
                           .rows_max = kRowsPerPage,
                           .node = node.uuid,
                           .epoch = lane.epoch,
                           .detail = is_by_person ? kCanceledWithAll : *config.endpoint.cancel_reason});
      out.add(sql::end_clearing{.endpoint = endpoint,
                                .before = before,
                                .bucket = lane.bucket,
                                .node = node.uuid,
                                .epoch = lane.epoch,
                                .with_scheduled = is_by_person});
      return page;
    }
    case Mode::cancel:
      return {out.add(sql::sweep_canceled{.bucket = lane.bucket,
                                          .endpoint = endpoint,
                                          .rows_max = kRowsPerPage,
                                          .node = node.uuid,
                                          .epoch = lane.epoch})
                  .position};
    default:
      return {out.add(sql::sweep_disabled{.bucket = lane.bucket,
                                          .endpoint = endpoint,
                                          .rows_max = kRowsPerPage,
                                          .node = node.uuid,
                                          .epoch = lane.epoch})
                  .position};
  }
}

bool may_have_rows(const Lane& lane) {
  return lane.buffer(Turn::first).may_have_more() || lane.buffer(Turn::retry).may_have_more();
}

}  // namespace

void Sweeper::sweep(const LanePtr& lane) {
  if (is_stopping_) return;
  if (lane->is_sweeping_) {
    // The running sweep may be waiting for this change.
    if (const auto running = running_.find(lane.get()); running != running_.end())
      running->second->changed.notify();
    return;
  }
  if (!lane->has_work()) return;
  lane->is_sweeping_ = true;
  tasks_.spawn(run(lane));
}

bool Sweeper::wants_sweep(const Lane& lane) const {
  const Mode mode = lane.config()->mode;
  return !lane.is_gone() && !is_stopping_ && mode != Mode::send && mode != Mode::hold;
}

runtime::Task<void> Sweeper::run(LanePtr lane) {
  Running running(tools_.loop);
  running_.emplace(lane.get(), &running);
  if (wants_sweep(*lane) && lane->config()->mode == Mode::clear)
    telemetry::log_info("canceling_pending").field("endpoint_id", lane->config()->endpoint.public_id);
  const bool is_cleared = co_await sweep_pages(lane, running);
  running_.erase(lane.get());
  lane->is_sweeping_ = false;
  if (lane->is_gone()) co_return;
  if (is_cleared) {
    // The newer rows stay, and the new configuration decides about them.
    lane->expect_more();
    tools_.loader.want_config(lane);
  } else {
    events_.changed(lane);
  }
}

// Ends when nothing is left, or when the endpoint no longer needs a sweep. True: `cancel_before` was reset.
//
// Races: a row that is outstanding must not be swept, because its attempt would then end as *late* and be
// missing from the history. And a fetch that runs in parallel could bring rows into memory that the page
// removes at the same time. So a page starts only when nothing is outstanding and no fetch is running; both
// end with LaneEvents::changed(), which reaches sweep() above. New attempts cannot start meanwhile: the lane
// is not in the mode `send`.
runtime::Task<bool> Sweeper::sweep_pages(LanePtr lane, Running& running) {
  RetryPause retry_pause({.first = kRetryPause, .longest = kRetryPauseMax});
  runtime::Yield turn{tools_.loop};
  while (wants_sweep(*lane)) {
    lane->drop_rows();
    if (lane->has_outstanding() || lane->is_fetching()) {
      co_await running.changed.wait_for(kLongWait);
      continue;
    }
    const bool is_clearing = lane->config()->mode == Mode::clear;
    const Swept swept = co_await sweep_page(lane);
    if (swept == Swept::failed) {
      const auto pause = retry_pause.after_failure();
      co_await running.pause.wait_for(pause);
      continue;
    }
    retry_pause.succeeded();
    if (swept == Swept::none_left && is_clearing) co_return true;
    // Rows that were announced during the page are in the table, and the buffers know it.
    if (swept == Swept::none_left && !may_have_rows(*lane)) co_return false;
    co_await turn;  // other work on the connection gets its turn
  }
  co_return false;
}

// While a page is removed, both buffers count as being fetched: a row that is announced meanwhile is then
// read after the page, not before it.
runtime::Task<Sweeper::Swept> Sweeper::sweep_page(LanePtr lane) {
  const auto config = lane->config();
  Swept swept = Swept::failed;
  pg::Batch out;
  const auto page = add_page(out, *lane, node_);
  for (const Turn turn : kBothTurns) lane->buffer(turn).begin_fetch();
  try {
    const auto deadline = base::BootClock::now() + kDatabaseWait;
    pg::Results results = co_await tools_.link.run(std::move(out), deadline);
    const size_t rows = results.take(page).size();
    // A short page does not mean the end: another transaction may have taken some of the rows. Clearing is
    // different, because its second statement reads the table itself.
    const bool is_last = config->mode == Mode::clear ? rows < static_cast<size_t>(kRowsPerPage) : rows == 0;
    swept = is_last ? Swept::none_left : Swept::some;
    count(*config, rows);
  } catch (const pg::Error& error) {
    telemetry::log_warn("sweep_failed").field("error", error.what());
  }
  for (const Turn turn : kBothTurns) {
    if (swept == Swept::none_left)
      lane->buffer(turn).fetched({}, true, [](model::DeliveryId) { return true; });
    else
      lane->buffer(turn).fetch_failed();
  }
  co_return swept;
}

void Sweeper::count(const LaneConfig& config, size_t rows) {
  const auto swept = static_cast<double>(rows);
  if (config.mode == Mode::disable) tools_.metrics.dead_lettered.at("endpoint_disabled").add(swept);
  // Only retention gives a reason.
  if (config.mode == Mode::clear && config.endpoint.cancel_reason)
    tools_.metrics.retention_canceled.add(swept);
}

void Sweeper::abandon() {
  is_stopping_ = true;
  for (const auto& [lane, running] : running_) {
    running->changed.notify();
    running->pause.notify();
  }
}

runtime::Task<void> Sweeper::stop() {
  abandon();
  co_await tasks_.join();
}

}  // namespace postrider::delivery
