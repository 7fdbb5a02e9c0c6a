#include "postrider/delivery/sweeper.hpp"

#include <utility>

#include "postrider/delivery/retry_pause.hpp"
#include "postrider/delivery/sweep.sql.hpp"
#include "postrider/pg/error.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::delivery {

namespace {

using namespace std::chrono_literals;
using Mode = LaneConfig::Mode;

constexpr int kRowsPerPage = 500;
constexpr auto kPagePause = 1ms;  // other work on the connection gets its turn
constexpr auto kRetryPause = 200ms;
constexpr auto kRetryPauseMax = 30s;  // a statement that Postgres refuses may be refused for hours
constexpr auto kDatabaseWait = 5s;    // then it is tried again, so that a stop does not hang on it
constexpr auto kCanceledWithAll = "canceled with all that was pending for the endpoint";

// Removes the next rows of the lane. The first result has one row for each.
pg::Batch page_of(const Lane& lane, model::NodeId node) {
  pg::Batch out;
  const LaneConfig& config = *lane.config();
  if (config.mode == Mode::clear) {
    const auto before = *config.endpoint.cancel_before;
    out.with(sql::sweep_older, node.uuid, lane.bucket, lane.endpoint.uuid, lane.epoch, kRowsPerPage, before,
             config.endpoint.cancel_reason.value_or(kCanceledWithAll))
        .with(sql::end_clearing, node.uuid, lane.bucket, lane.endpoint.uuid, lane.epoch, before);
  } else {
    out.with(config.mode == Mode::cancel ? sql::sweep_canceled : sql::sweep_disabled, node.uuid, lane.bucket,
             lane.endpoint.uuid, lane.epoch, kRowsPerPage);
  }
  return out;
}

}  // namespace

void Sweeper::sweep(const LanePtr& lane) {
  if (is_stopping_ || !lane->has_work() || std::exchange(lane->is_sweeping_, true)) return;
  tasks_.spawn(run(lane));
}

bool Sweeper::wants_sweep(const Lane& lane) const {
  const Mode mode = lane.config()->mode;
  return !lane.is_gone() && !is_stopping_ && mode != Mode::send && mode != Mode::hold;
}

runtime::Task<void> Sweeper::run(LanePtr lane) {
  runtime::Wakeup pause(tools_.loop);
  RetryPause retry_pause({.first = kRetryPause, .longest = kRetryPauseMax});
  bool is_cleared = false;
  if (wants_sweep(*lane) && lane->config()->mode == Mode::clear)
    telemetry::log_info("canceling_pending").field("endpoint_id", lane->config()->endpoint.public_id);
  while (!is_cleared && wants_sweep(*lane)) {
    // Attempts in flight end first, so that their results are not lost. Everything else can go from memory.
    lane->drop_rows();
    if (lane->has_outstanding() || lane->is_fetching()) {
      co_await pause.wait_for(kRetryPause);
      continue;
    }
    const bool is_clearing = lane->config()->mode == Mode::clear;
    const Swept swept = co_await sweep_page(lane);
    is_cleared = swept == Swept::none_left && is_clearing;
    const bool may_have_more =
        lane->buffer(Turn::first).may_have_more() || lane->buffer(Turn::retry).may_have_more();
    if (swept == Swept::none_left && !may_have_more) break;
    if (swept != Swept::failed) retry_pause.succeeded();
    const auto rest = swept == Swept::failed ? retry_pause.after_failure() : kPagePause;
    if (swept != Swept::none_left) co_await pause.wait_for(rest);
  }
  lane->is_sweeping_ = false;
  if (lane->is_gone()) co_return;
  if (is_cleared) {
    // The newer rows stay, and the new configuration says how to go on with them.
    lane->expect_more();
    tools_.loader.want_config(lane);
  } else {
    events_.changed(lane);
  }
}

// While a page is removed, both buffers count as being fetched: a row that is announced meanwhile is then
// read after the page, not before it.
runtime::Task<Sweeper::Swept> Sweeper::sweep_page(LanePtr lane) {
  const auto config = lane->config();
  Swept swept = Swept::failed;
  pg::Batch out = page_of(*lane, node_);
  for (const Turn turn : kBothTurns) lane->buffer(turn).begin_fetch();
  try {
    const auto deadline = base::BootClock::now() + kDatabaseWait;
    const auto results = co_await tools_.link.run(std::move(out), deadline);
    const size_t rows = results.front().size();
    // A short page does not mean the end: another transaction may have taken some of the rows. Clearing is
    // different, because its second statement looks at the table itself.
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

runtime::Task<void> Sweeper::stop() {
  is_stopping_ = true;
  co_await tasks_.join();
}

}  // namespace postrider::delivery
