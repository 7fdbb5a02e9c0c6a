#include "postrider/delivery/report/rollup_writer.hpp"

#include <algorithm>
#include <ranges>
#include <span>
#include <tuple>
#include <utility>

#include "postrider/delivery/report/rollup.sql.hpp"
#include "postrider/pg/error.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::delivery {

namespace {

constexpr size_t kRowsPerStatement = 1'000;
constexpr size_t kWaitingMax =
    200'000;  // while the database is unavailable; the rest is counted when the hour is closed

using Rows = std::span<const RollupRow>;

template <auto member>
auto counts(Rows rows) {
  return std::views::transform(rows, [](const RollupRow& row) { return row.counts.*member; });
}

pg::Batch statement(Rows rows, model::NodeId node) {
  pg::Batch out;
  out.add(sql::add_rollups{
      .node = node.uuid,
      .hours = std::views::transform(
          rows, [](const RollupRow& row) { return base::Timestamp(std::chrono::hours(row.counts.hour)); }),
      .tenants = std::views::transform(rows, &RollupRow::tenant),
      .endpoints = std::views::transform(rows, [](const RollupRow& row) { return row.endpoint.uuid; }),
      .event_types =
          std::views::transform(rows, [](const RollupRow& row) { return std::string_view(row.counts.type); }),
      .delivered = counts<&RollupCounts::delivered>(rows),
      .delivered_attempts = counts<&RollupCounts::delivered_attempts>(rows),
      .first_attempt_successes = counts<&RollupCounts::first_attempt_successes>(rows),
      .retrying = counts<&RollupCounts::retrying>(rows),
      .dead_letters = counts<&RollupCounts::dead_letters>(rows),
      .dead_letter_attempts = counts<&RollupCounts::dead_letter_attempts>(rows),
      .exchanges = counts<&RollupCounts::exchanges>(rows),
      .latency_us = counts<&RollupCounts::latency_us>(rows),
      .latency_us_max = counts<&RollupCounts::latency_us_max>(rows)});
  return out;
}

auto key_of(const RollupRow& row) {
  return std::tie(row.counts.hour, row.tenant, row.endpoint, row.counts.type);
}

// Two of the same key in one statement would be an error.
void add_up(std::vector<RollupRow>& rows) {
  std::sort(rows.begin(), rows.end(),
            [](const RollupRow& a, const RollupRow& b) { return key_of(a) < key_of(b); });
  size_t kept = 0;
  for (size_t i = 1; i < rows.size(); ++i) {
    if (key_of(rows[kept]) != key_of(rows[i])) {
      if (++kept != i) rows[kept] = std::move(rows[i]);
      continue;
    }
    RollupCounts& sum = rows[kept].counts;
    const RollupCounts& more = rows[i].counts;
    for (int64_t RollupCounts::* const member :
         {&RollupCounts::delivered, &RollupCounts::delivered_attempts, &RollupCounts::first_attempt_successes,
          &RollupCounts::retrying, &RollupCounts::dead_letters, &RollupCounts::dead_letter_attempts,
          &RollupCounts::exchanges, &RollupCounts::latency_us})
      sum.*member += more.*member;
    sum.latency_us_max = std::max(sum.latency_us_max, more.latency_us_max);
  }
  if (!rows.empty()) rows.resize(kept + 1);
}

}  // namespace

RollupWriter::RollupWriter(runtime::Loop& loop, pg::Link& link, model::NodeId node, Collect collect)
    : Service(loop), link_(link), node_(node), collect_(std::move(collect)) {}

runtime::Task<runtime::SteadyTime> RollupWriter::pass(runtime::SteadyTime) {
  co_await write();
  co_return base::BootClock::now() + kInterval;
}

runtime::Task<void> RollupWriter::write() {
  auto collecting = collect_();
  std::vector<RollupRow> fresh = co_await collecting;
  if (waiting_.size() < kWaitingMax)
    waiting_.insert(waiting_.end(), std::make_move_iterator(fresh.begin()),
                    std::make_move_iterator(fresh.end()));
  add_up(waiting_);
  try {
    while (!waiting_.empty()) {
      const size_t begin = waiting_.size() - std::min(waiting_.size(), kRowsPerStatement);
      pg::Batch batch = statement(Rows(waiting_).subspan(begin), node_);
      co_await link_.run(std::move(batch));
      waiting_.resize(begin);
    }
  } catch (const pg::Error& error) {
    // If the result is unknown, the counts may be added twice; closing the hour corrects them.
    if (error.kind() != pg::Kind::unavailable)
      telemetry::log_warn("rollup_failed").field("error", error.what());
  }
}

}  // namespace postrider::delivery
