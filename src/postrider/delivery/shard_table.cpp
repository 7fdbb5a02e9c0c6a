// The half of a shard that reads and clears the queue table: a bucket's lanes, rows that others published,
// and the rows of endpoints that get nothing any more.
#include <algorithm>
#include <utility>

#include "postrider/delivery/fetch.sql.hpp"
#include "postrider/delivery/settle.sql.hpp"
#include "postrider/delivery/shard.hpp"
#include "postrider/pg/error.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::delivery {

namespace {

using namespace std::chrono_literals;

constexpr int kLanesPerScan = 1'000;
constexpr int kSweepRows = 500;
constexpr auto kRetryPause = 200ms;
constexpr auto kDatabaseWait = 5s;  // then it is tried again; a stop must not hang on it

// The next rows of the lane that leave the queue; the first answer has one row for each.
pg::Batch sweep_batch(const Lane& lane, model::NodeId node) {
  pg::Batch out;
  const auto& before = lane.config->endpoint.cancel_before;
  if (lane.config->mode == LaneConfig::Mode::clear)
    out.with(sql::sweep_older, node.uuid, lane.bucket, lane.endpoint.uuid, lane.epoch, kSweepRows, *before)
        .with(sql::end_clearing, node.uuid, lane.bucket, lane.endpoint.uuid, lane.epoch, *before);
  else
    out.with(lane.config->mode == LaneConfig::Mode::cancel ? sql::sweep_canceled : sql::sweep_disabled,
             node.uuid, lane.bucket, lane.endpoint.uuid, lane.epoch, kSweepRows);
  return out;
}

// From which id on which bucket is read next.
struct FoundPage {
  FoundPage() = default;
  FoundPage(std::vector<int> of, base::Uuid first) : buckets(std::move(of)), from(buckets.size(), first) {}

  std::vector<int> buckets;
  std::vector<base::Uuid> from;

  // Goes on behind a full page only. Its last row comes again and is known by then, or in the table still.
  FoundPage after(const pg::Rows& rows, size_t full) const {
    FoundPage next;
    for (const int bucket : buckets) {
      size_t count = 0;
      base::Uuid last;
      for (size_t i = 0; i < rows.size(); ++i) {
        if (rows.get<int32_t>(i, 0) != bucket) continue;
        ++count;
        last = std::max(last, rows.get<base::Uuid>(i, 2));
      }
      if (count < full) continue;
      next.buckets.push_back(bucket);
      next.from.push_back(last);
    }
    return next;
  }
};

}  // namespace

// Walks over the lanes of a bucket that was taken or may have been missed; each is then read from its start.
runtime::Task<void> Shard::scan(int bucket, int64_t epoch, Reason reason) {
  const auto is_current = [this, bucket, epoch] {
    const auto found = buckets_.find(bucket);
    return found != buckets_.end() && found->second.epoch == epoch && !is_stopping_;
  };
  runtime::Wakeup pause(tools_.loop);
  base::Uuid after;
  while (is_current()) {
    bool is_last = false, failed = false;
    try {
      pg::Batch page;
      page.with(sql::lanes_of_bucket, bucket, after, kLanesPerScan);
      const auto deadline = base::BootClock::now() + kDatabaseWait;
      const auto answers = co_await tools_.link.run(std::move(page), deadline);
      if (!is_current()) co_return;
      const pg::Rows& found = answers.front();
      for (size_t i = 0; i < found.size(); ++i) {
        after = found.get<base::Uuid>(i, 0);
        const LanePtr lane = lane_of({after}, bucket);
        for (const Turn turn : {Turn::first, Turn::retry}) {
          RowBuffer& buffer = lane->buffer(turn);
          // A patrol leaves a lane alone that goes through a backlog: its start may be full of dead rows.
          if (reason == Reason::patrol && buffer.may_have_more()) continue;
          buffer.expect_more();
        }
        touch(lane);
      }
      is_last = found.size() < static_cast<size_t>(kLanesPerScan);
    } catch (const pg::Error& error) {
      telemetry::log_warn("bucket_scan_failed").field("bucket", bucket).field("error", error.what());
      failed = true;
    }
    if (failed) co_await pause.wait_for(kRetryPause);
    if (is_last) break;
  }
  if (is_current()) buckets_[bucket].is_scanning = false;
}

// In pages: a range may be wide, and hold rows of other publishes by the hundred thousand.
runtime::Task<void> Shard::fetch_found(Found found) {
  runtime::Wakeup pause(tools_.loop);
  FoundPage page(found.buckets, found.first.uuid);
  while (!is_stopping_ && !page.buckets.empty()) {
    bool has_failed = false;
    try {
      pg::Batch fetch;
      fetch.with(sql::rows_of_range, page.buckets, page.from, found.last.uuid,
                 static_cast<int>(options_.found_rows_max));
      const auto deadline = base::BootClock::now() + kDatabaseWait;
      const auto answers = co_await tools_.link.run(std::move(fetch), deadline);
      take_found(answers.front());
      page = page.after(answers.front(), options_.found_rows_max);
    } catch (const pg::Error& error) {
      telemetry::log_warn("discovery_failed").field("error", error.what());
      has_failed = true;
    }
    if (has_failed) co_await pause.wait_for(kRetryPause);
  }
}

void Shard::take_found(const pg::Rows& rows) {
  for (size_t i = 0; i < rows.size(); ++i) {
    const int bucket = rows.get<int32_t>(i, 0);
    if (!buckets_.contains(bucket)) continue;
    Row row;
    row.key = {rows.get<int64_t>(i, 4), rows.get<base::Timestamp>(i, 5), {rows.get<base::Uuid>(i, 2)}};
    row.event_id = {rows.get<base::Uuid>(i, 3)};
    row.attempts = rows.get<int32_t>(i, 6);
    row.created_at = rows.get<base::Timestamp>(i, 7);
    row.replay_id = rows.get<std::optional<base::Uuid>>(i, 8);
    const LanePtr lane = lane_of({rows.get<base::Uuid>(i, 1)}, bucket);
    remember_fetched(row);  // ids of several nodes interleave: it may be one of our own
    if (!lane->is_known(row.id())) offer_row(lane, std::move(row), rows.get<bool>(i, 9));
  }
}

// Rows of a disabled or deleted endpoint leave the queue, until none is found; rows that are committed later
// are announced like all others and swept then. Of an endpoint that is to be cleared only the older ones go.
runtime::Task<void> Shard::sweep(LanePtr lane) {
  runtime::Wakeup pause(tools_.loop);
  const auto wants_sweep = [&lane, this] {
    return !lane->is_gone && !is_stopping_ && lane->config->mode != LaneConfig::Mode::send &&
           lane->config->mode != LaneConfig::Mode::hold;
  };
  if (wants_sweep() && lane->config->mode == LaneConfig::Mode::clear)
    telemetry::log_info("canceling_pending").field("endpoint_id", lane->config->endpoint.outside_id);
  while (wants_sweep()) {
    // What is being sent right now ends first, so that its result is not lost; the rest need not be in
    // memory.
    lane->buffer(Turn::first).shrink(0);
    lane->buffer(Turn::retry).shrink(0);
    if (!lane->away.empty() || lane->buffer(Turn::first).is_fetching() ||
        lane->buffer(Turn::retry).is_fetching()) {
      co_await pause.wait_for(kRetryPause);
      continue;
    }
    bool is_done = false, has_failed = false, is_clearing = false;
    try {
      const bool is_disabled = lane->config->mode == LaneConfig::Mode::disable;
      is_clearing = lane->config->mode == LaneConfig::Mode::clear;
      pg::Batch out = sweep_batch(*lane, options_.node_id);
      lane->buffer(Turn::first).begin_fetch();
      lane->buffer(Turn::retry).begin_fetch();
      const auto deadline = base::BootClock::now() + kDatabaseWait;
      const auto answers = co_await tools_.link.run(std::move(out), deadline);
      // Fewer than asked for may mean that somebody else took some of them. Clearing asks the table itself.
      is_done =
          is_clearing ? answers.front().size() < static_cast<size_t>(kSweepRows) : answers.front().empty();
      if (is_disabled)
        tools_.metrics.dead_lettered.at("endpoint_disabled").add(static_cast<double>(answers.front().size()));
    } catch (const pg::Error& error) {
      telemetry::log_warn("sweep_failed").field("error", error.what());
      has_failed = true;
    }
    for (const Turn turn : {Turn::first, Turn::retry}) {
      if (is_done)
        lane->buffer(turn).fetched({}, true, [](model::DeliveryId) { return true; });
      else
        lane->buffer(turn).fetch_failed();
    }
    if (is_done && is_clearing) {
      lane->buffer(Turn::first).expect_more();
      lane->buffer(Turn::retry).expect_more();
      lane->is_sweeping = false;
      if (!lane->is_gone) loader_.want_config(lane);  // which says how it goes on
      co_return;
    }
    if (is_done && !lane->buffer(Turn::first).may_have_more() && !lane->buffer(Turn::retry).may_have_more())
      break;
    const auto rest = has_failed ? std::chrono::milliseconds(kRetryPause) : 1ms;
    if (!is_done) co_await pause.wait_for(rest);
  }
  lane->is_sweeping = false;
  if (!lane->is_gone) touch(lane);
}

}  // namespace postrider::delivery
