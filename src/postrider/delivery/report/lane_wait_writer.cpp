#include "postrider/delivery/report/lane_wait_writer.hpp"

#include <algorithm>
#include <optional>
#include <ranges>
#include <string_view>
#include <utility>

#include "postrider/delivery/report/lane_wait.sql.hpp"
#include "postrider/pg/error.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::delivery {

using runtime::Task;

namespace {

auto lane_of(const LaneWait& wait) {
  return std::pair(wait.endpoint, wait.is_retry);
}

std::optional<std::string_view> reason_after(const LaneWaitChange& change) {
  if (change.is_over) return std::nullopt;
  return label(change.wait.reason);
}

void add_statement(pg::Batch& batch, const std::vector<LaneWaitChange>& changes) {
  using std::views::transform;
  batch.add(sql::change_lane_waits{
      .endpoints = transform(changes, [](const auto& each) { return each.wait.endpoint.uuid; }),
      .are_retries = transform(changes, [](const auto& each) { return each.wait.is_retry; }),
      .buckets = transform(changes, [](const auto& each) { return each.wait.bucket; }),
      .epochs = transform(changes, [](const auto& each) { return each.wait.epoch; }),
      .reasons = transform(changes, reason_after)});
}

}  // namespace

std::vector<LaneWaitChange> changes_of(const std::vector<LaneWait>& before,
                                       const std::vector<LaneWait>& after) {
  std::vector<LaneWaitChange> changes;
  auto old = before.begin();
  for (const LaneWait& wait : after) {
    for (; old != before.end() && lane_of(*old) < lane_of(wait); ++old) changes.push_back({*old, true});
    const bool is_known = old != before.end() && lane_of(*old) == lane_of(wait);
    if (!is_known || *old != wait) changes.push_back({wait, false});
    if (is_known) ++old;
  }
  for (; old != before.end(); ++old) changes.push_back({*old, true});
  return changes;
}

LaneWaitWriter::LaneWaitWriter(runtime::Loop& loop, pg::Link& link, Collect collect)
    : Service(loop), link_(link), collect_(std::move(collect)) {}

Task<runtime::SteadyTime> LaneWaitWriter::pass(runtime::SteadyTime) {
  auto collecting = collect_();
  std::vector<LaneWait> now = co_await collecting;
  std::ranges::sort(now);
  auto writing = write(std::move(now));
  co_await writing;
  co_return base::BootClock::now() + kInterval;
}

Task<void> LaneWaitWriter::write(std::vector<LaneWait> now) {
  const std::vector<LaneWaitChange> changes = changes_of(written_, now);
  if (changes.empty()) co_return;
  pg::Batch batch;
  add_statement(batch, changes);
  try {
    co_await link_.run(std::move(batch));
    written_ = std::move(now);
  } catch (const pg::Error& error) {  // written a second later
    if (error.kind() != pg::Kind::unavailable)
      telemetry::log_warn("lane_waits_not_written").field("error", error.what());
  }
}

Task<void> LaneWaitWriter::finish() {
  auto writing = write({});
  co_await writing;
}

}  // namespace postrider::delivery
