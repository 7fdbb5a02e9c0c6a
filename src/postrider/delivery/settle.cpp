#include "postrider/delivery/settle.hpp"

#include <algorithm>
#include <ranges>
#include <set>
#include <utility>

#include "postrider/base/check.hpp"
#include "postrider/base/fail_point.hpp"
#include "postrider/delivery/away_clock.hpp"
#include "postrider/delivery/dead_letter.sql.hpp"
#include "postrider/delivery/settle.sql.hpp"
#include "postrider/pg/error.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::delivery {

namespace {

using namespace std::chrono_literals;
using Items = std::vector<const Settlement*>;

constexpr auto kRetryPause = 50ms, kRetryPauseMax = 1'000ms;  // doubled from one to the other
constexpr auto kDatabaseWait = 60s;
constexpr int kSingleTries = 5;              // for an item that Postgres refuses; others must not wait for it
constexpr auto kMissingPartition = "23514";  // check_violation, also "no partition of relation found for row"

// One array parameter: a member of each item.
template <class Get>
void add_column(pg::Params& params, const Items& items, Get get) {
  params.add(std::views::transform(items, [get](const Settlement* item) { return get(*item); }));
}

std::optional<std::string_view> view(const std::optional<std::string>& text) {
  return text ? std::optional<std::string_view>(*text) : std::nullopt;
}

// The parameters that all three kinds of settlement share, in the order of settle.sql.
pg::Params attempt_columns(const Items& items, model::NodeId node) {
  pg::Params params;
  params.reserve(items.size() * 300);
  params.add(node.uuid);
  add_column(params, items, [](const Settlement& s) { return s.lane->bucket; });
  add_column(params, items, [](const Settlement& s) { return s.row.id().uuid; });
  add_column(params, items, [](const Settlement& s) { return s.lane->epoch; });
  add_column(params, items, [](const Settlement& s) { return s.row.attempts; });
  add_column(params, items, [](const Settlement& s) { return s.facts.status_code; });
  add_column(params, items, [](const Settlement& s) { return s.facts.started_at; });
  add_column(params, items, [](const Settlement& s) { return s.facts.dns_us; });
  add_column(params, items, [](const Settlement& s) { return s.facts.connect_us; });
  add_column(params, items, [](const Settlement& s) { return s.facts.tls_us; });
  add_column(params, items, [](const Settlement& s) { return s.facts.first_byte_us; });
  add_column(params, items, [](const Settlement& s) { return s.facts.total_us; });
  add_column(params, items, [](const Settlement& s) { return view(s.facts.preview); });
  add_column(params, items, [](const Settlement& s) { return view(s.facts.address); });
  return params;
}

void add_error_columns(pg::Params& params, const Items& items) {
  add_column(params, items, [](const Settlement& s) { return view(s.facts.error); });
  add_column(params, items, [](const Settlement& s) { return view(s.facts.error_detail); });
}

// The UTC day in a time-ordered id.
std::string day_of(model::DeliveryId id) {
  int64_t ms = 0;
  for (size_t i = 0; i < 6; ++i) ms = ms << 8 | id.uuid.bytes[i];
  return base::to_rfc3339(base::Timestamp(std::chrono::milliseconds(ms))).substr(0, 10);
}

}  // namespace

Settler::Settler(runtime::Loop& loop, pg::Link& link, telemetry::Metrics& metrics, SettlerOptions options)
    : loop_(loop), link_(link), metrics_(metrics), options_(options), pause_(loop), idle_(loop) {}

void Settler::Writing::await_suspend(std::coroutine_handle<> waiting) {
  waiting_ = waiting;
  settler_.waiting_.push_back(this);
  if (std::exchange(settler_.is_running_, true)) return;
  settler_.tasks_.spawn(settler_.run());
}

void Settler::finish(Writing& writing, Written written) {
  writing.written_ = written;
  writing.waiting_.resume();
}

runtime::Task<void> Settler::run() {
  // Everything that ends in this turn of the loop goes into one batch.
  runtime::Yield turn{loop_};
  co_await turn;
  while (!is_stopping_ && !waiting_.empty()) {
    Batch batch = take_batch();
    writing_ = batch.size();
    metrics_.batch_size.at("settle").observe(static_cast<double>(batch.size()));
    co_await write(std::move(batch), Repeat::no);
    writing_ = 0;
  }
  is_running_ = false;
  idle_.notify();
}

// Sorted by bucket and id: two settles that lock rows in the same order cannot deadlock.
Settler::Batch Settler::take_batch() {
  const auto count = static_cast<ptrdiff_t>(std::min(waiting_.size(), options_.batch_items_max));
  Batch batch(waiting_.begin(), waiting_.begin() + count);
  waiting_.erase(waiting_.begin(), waiting_.begin() + count);
  std::sort(batch.begin(), batch.end(), [](const Writing* one, const Writing* other) {
    const Settlement &a = one->settlement_, &b = other->settlement_;
    return std::pair(a.lane->bucket, a.row.id()) < std::pair(b.lane->bucket, b.row.id());
  });
  return batch;
}

pg::Batch Settler::statements(const Batch& batch) const {
  Items delivered, retrying, dead;
  for (const Writing* writing : batch) {
    switch (writing->settlement_.verdict.kind) {
      case Verdict::Kind::delivered:
        delivered.push_back(&writing->settlement_);
        break;
      case Verdict::Kind::retry:
        retrying.push_back(&writing->settlement_);
        break;
      case Verdict::Kind::dead_letter:
        dead.push_back(&writing->settlement_);
        break;
    }
  }
  pg::Batch out;
  if (!delivered.empty()) out.add(sql::delivered, attempt_columns(delivered, options_.node_id));
  if (!retrying.empty()) {
    pg::Params params = attempt_columns(retrying, options_.node_id);
    add_error_columns(params, retrying);
    add_column(params, retrying, [](const Settlement& s) { return s.verdict.retry_at; });
    add_column(params, retrying, [](const Settlement& s) { return !s.lane->is_strict(); });
    out.add(sql::retrying, std::move(params));
  }
  if (!dead.empty()) {
    pg::Params params = attempt_columns(dead, options_.node_id);
    add_error_columns(params, dead);
    add_column(params, dead, [](const Settlement& s) { return label(s.verdict.cause); });
    add_column(params, dead, [](const Settlement& s) { return s.facts.is_exchange; });
    out.add(sql::dead_letter, std::move(params));
  }
  return out;
}

// Writes the batch however long it takes: again after the database was away or busy, in halves if an item is
// bad.
runtime::Task<void> Settler::write(Batch batch, Repeat repeat) {
  bool has_partitions = false;
  int single_tries = 0;
  auto pause = kRetryPause;
  while (!is_stopping_) {
    pg::Kind kind = pg::Kind::other;
    bool is_item = false;
    std::string sqlstate, message;
    try {
      co_await write_once(batch, repeat);
      co_return;
    } catch (const pg::Error& error) {
      kind = error.kind();
      is_item = error.is_permanent();
      sqlstate = error.sqlstate();
      message = error.what();
    }
    telemetry::log_warn("settle_failed")
        .field("kind", pg::to_string(kind))
        .field("items", batch.size())
        .field("error", message);
    if (kind == pg::Kind::unknown) repeat = Repeat::yes;
    if (is_item && sqlstate == kMissingPartition && !has_partitions) {
      has_partitions = co_await make_partitions(batch);
      if (!has_partitions) co_await pause_.wait_for(kRetryPause);
    } else if (is_item && batch.size() > 1) {
      Batch second(batch.begin() + static_cast<ptrdiff_t>(batch.size() / 2), batch.end());
      batch.resize(batch.size() / 2);
      co_await write(std::move(batch), repeat);
      co_await write(std::move(second), repeat);
      co_return;
    } else if (is_item && ++single_tries == kSingleTries) {
      telemetry::log_error("settle_refused")
          .field("delivery_id", batch.front()->settlement_.row.id().public_id())
          .field("error", message);
      finish(*batch.front(), Written::refused);
      co_return;
    } else if (is_item) {
      drop_details(batch);
      co_await pause_.wait_for(kRetryPause);
    } else {
      co_await pause_.wait_for(pause);
      pause = std::min(2 * pause, kRetryPauseMax);
    }
  }
  for (Writing* writing : batch) finish(*writing, Written::abandoned);
}

runtime::Task<void> Settler::write_once(const Batch& batch, Repeat repeat) {
  base::reach("settle.before_commit");
  metrics_.database_round_trips.add();
  pg::Batch out = statements(batch);
  const auto deadline = base::BootClock::now() + kDatabaseWait;
  const auto results = co_await link_.run(std::move(out), deadline);
  base::reach("settle.after_commit");
  std::vector<model::DeliveryId> settled;
  for (const pg::Rows& rows : results)
    for (size_t i = 0; i < rows.size(); ++i) settled.push_back({rows.get<base::Uuid>(i, 0)});
  std::sort(settled.begin(), settled.end());
  report(batch, settled, repeat);
}

void Settler::report(const Batch& batch, const std::vector<model::DeliveryId>& settled, Repeat repeat) {
  for (Writing* writing : batch) {
    const Settlement& settlement = writing->settlement_;
    const bool is_written = std::binary_search(settled.begin(), settled.end(), settlement.row.id());
    const bool is_repeat = repeat == Repeat::yes && !settlement.lane->is_gone();
    if (!is_written && !is_repeat) metrics_.late_settles_dropped.add();
    finish(*writing, is_written ? Written::now : is_repeat ? Written::before : Written::late);
  }
}

// Postgres refuses a single settlement for its data. The outcome is kept, and what only people read is left
// out.
void Settler::drop_details(const Batch& batch) {
  for (Writing* writing : batch) {
    AttemptFacts& facts = writing->settlement_.facts;
    facts.preview.reset();
    facts.error_detail.reset();
    facts.address.reset();
  }
}

runtime::Task<bool> Settler::make_partitions(const Batch& batch) {
  std::set<std::string> days;
  for (const Writing* writing : batch) days.insert(day_of(writing->settlement_.row.id()));
  const std::vector<std::string> wanted(days.begin(), days.end());
  pg::Batch make;
  make.add(sql::limit_lock_wait).with(sql::make_partitions_of, wanted);
  try {
    const auto deadline = base::BootClock::now() + kDatabaseWait;
    co_await link_.run(std::move(make), deadline);
  } catch (const pg::Error& error) {
    telemetry::log_warn("make_partitions_failed").field("error", error.what());
    co_return error.is_permanent();
  }
  co_return true;
}

runtime::Task<void> Settler::drain(base::SteadyTime deadline) {
  AwayClock away(link_);
  while (waiting() > 0 && base::BootClock::now() < deadline && !away.is_too_long()) {
    const auto next_look = AwayClock::next_look(deadline);
    co_await idle_.wait_until(next_look);
  }
}

runtime::Task<void> Settler::stop() {
  is_stopping_ = true;
  pause_.notify();
  co_await tasks_.join();
  while (!waiting_.empty()) {
    Writing& writing = *waiting_.front();
    waiting_.pop_front();
    finish(writing, Written::abandoned);
  }
}

}  // namespace postrider::delivery
