#include "postrider/delivery/rollup_writer.hpp"

#include <algorithm>
#include <ranges>
#include <span>
#include <tuple>
#include <utility>

#include "postrider/delivery/rollup.sql.hpp"
#include "postrider/pg/error.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::delivery {

namespace {

constexpr size_t kRowsPerStatement = 1'000;
constexpr size_t kWaitingMax = 200'000;  // while the database is away; the rest waits for the hour's end

template <class Get>
void add_column(pg::Params& params, std::span<const TallyRow> rows, Get get) {
  params.add(std::views::transform(rows, get));
}

base::Timestamp begin_of(const TallyRow& row) {
  return base::Timestamp(std::chrono::hours(row.tally.hour));
}

pg::Params columns(std::span<const TallyRow> rows, model::NodeId node) {
  pg::Params params;
  params.add(node.uuid);
  add_column(params, rows, begin_of);
  add_column(params, rows, [](const TallyRow& row) { return std::string_view(row.tenant); });
  add_column(params, rows, [](const TallyRow& row) { return row.endpoint.uuid; });
  add_column(params, rows, [](const TallyRow& row) { return std::string_view(row.tally.type); });
  for (int64_t Tally::* const member :
       {&Tally::delivered, &Tally::delivered_attempts, &Tally::first_attempt_successes, &Tally::retried,
        &Tally::dead, &Tally::dead_attempts, &Tally::exchanges, &Tally::latency_us, &Tally::latency_us_max})
    add_column(params, rows, [member](const TallyRow& row) { return row.tally.*member; });
  return params;
}

auto key_of(const TallyRow& row) {
  return std::tie(row.tally.hour, row.tenant, row.endpoint, row.tally.type);
}

// Two of the same key in one statement would be an error.
void add_up(std::vector<TallyRow>& rows) {
  std::sort(rows.begin(), rows.end(),
            [](const TallyRow& a, const TallyRow& b) { return key_of(a) < key_of(b); });
  size_t kept = 0;
  for (size_t i = 1; i < rows.size(); ++i) {
    if (key_of(rows[kept]) != key_of(rows[i])) {
      if (++kept != i) rows[kept] = std::move(rows[i]);
      continue;
    }
    Tally& sum = rows[kept].tally;
    const Tally& more = rows[i].tally;
    for (int64_t Tally::* const member :
         {&Tally::delivered, &Tally::delivered_attempts, &Tally::first_attempt_successes, &Tally::retried,
          &Tally::dead, &Tally::dead_attempts, &Tally::exchanges, &Tally::latency_us})
      sum.*member += more.*member;
    sum.latency_us_max = std::max(sum.latency_us_max, more.latency_us_max);
  }
  if (!rows.empty()) rows.resize(kept + 1);
}

}  // namespace

RollupWriter::RollupWriter(runtime::Loop& loop, pg::Link& link, model::NodeId node, Collect collect)
    : link_(link), node_(node), collect_(std::move(collect)), wakeup_(loop) {}

void RollupWriter::start() {
  tasks_.spawn(run());
}

runtime::Task<void> RollupWriter::run() {
  while (!is_stopping_) {
    co_await wakeup_.wait_for(kInterval);
    co_await run_once();
  }
}

runtime::Task<void> RollupWriter::run_once() {
  auto collecting = collect_();
  std::vector<TallyRow> fresh = co_await collecting;
  if (waiting_.size() < kWaitingMax)
    waiting_.insert(waiting_.end(), std::make_move_iterator(fresh.begin()),
                    std::make_move_iterator(fresh.end()));
  add_up(waiting_);
  try {
    while (!waiting_.empty()) {
      const size_t begin = waiting_.size() - std::min(waiting_.size(), kRowsPerStatement);
      pg::Params params = columns(std::span(waiting_).subspan(begin), node_);
      co_await link_.run_one(sql::add_rollups, std::move(params));
      waiting_.resize(begin);
    }
  } catch (const pg::Error& error) {
    // An unknown outcome may count twice until the hour is closed.
    if (error.kind() != pg::Kind::unavailable)
      telemetry::log_warn("rollup_failed").field("error", error.what());
  }
}

runtime::Task<void> RollupWriter::stop() {
  is_stopping_ = true;
  wakeup_.notify();
  co_await tasks_.join();
}

}  // namespace postrider::delivery
