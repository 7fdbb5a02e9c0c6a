#include "postrider/delivery/settle.hpp"

#include <algorithm>
#include <iterator>
#include <ranges>
#include <set>
#include <span>
#include <utility>

#include "postrider/base/check.hpp"
#include "postrider/base/fail_point.hpp"
#include "postrider/delivery/settle.sql.hpp"
#include "postrider/pg/error.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::delivery {

namespace {

using namespace std::chrono_literals;
using Items = std::vector<const Settlement*>;

constexpr auto kRetryPause = 50ms, kRetryPauseMax = 1'000ms;  // doubled from one to the other
constexpr auto kDatabaseWait = 60s;
constexpr auto kAwayMax = 3s;                // at the end: longer than it takes to connect again
constexpr int kSingleTries = 5;              // of an item that Postgres refuses; others must not wait for it
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

Items of_kind(const std::vector<Settlement>& batch, Verdict::Kind kind) {
  Items items;
  for (const Settlement& settlement : batch)
    if (settlement.verdict.kind == kind) items.push_back(&settlement);
  return items;
}

pg::Batch statements(const std::vector<Settlement>& batch, model::NodeId node) {
  pg::Batch out;
  if (const Items items = of_kind(batch, Verdict::Kind::delivered); !items.empty())
    out.add(sql::delivered, attempt_columns(items, node));
  if (const Items items = of_kind(batch, Verdict::Kind::retry); !items.empty()) {
    pg::Params params = attempt_columns(items, node);
    add_error_columns(params, items);
    add_column(params, items, [](const Settlement& s) { return s.verdict.retry_at; });
    add_column(params, items, [](const Settlement& s) { return !s.lane->is_strict(); });
    out.add(sql::deferred, std::move(params));
  }
  if (const Items items = of_kind(batch, Verdict::Kind::dead_letter); !items.empty()) {
    pg::Params params = attempt_columns(items, node);
    add_error_columns(params, items);
    add_column(params, items, [](const Settlement& s) { return label(s.verdict.cause); });
    add_column(params, items, [](const Settlement& s) { return s.facts.is_exchange; });
    out.add(sql::dead, std::move(params));
  }
  return out;
}

// Whether what was asked is at fault, not the moment.
bool is_items_fault(const pg::Error& error) {
  return error.kind() == pg::Kind::item || (error.kind() == pg::Kind::other && !error.is_servers_trouble());
}

// The UTC day in a time-ordered id.
std::string day_of(model::DeliveryId id) {
  int64_t ms = 0;
  for (size_t i = 0; i < 6; ++i) ms = ms << 8 | id.uuid.bytes[i];
  return base::to_rfc3339(base::Timestamp(std::chrono::milliseconds(ms))).substr(0, 10);
}

}  // namespace

Settler::Settler(runtime::Loop& loop, pg::Link& link, telemetry::Metrics& metrics, SettlerOptions options,
                 Settled settled)
    : loop_(loop),
      link_(link),
      metrics_(metrics),
      options_(options),
      settled_(std::move(settled)),
      pause_(loop),
      draining_(loop) {}

void Settler::add(Settlement settlement) {
  waiting_.push_back(std::move(settlement));
  wake();
}

void Settler::change_status(StatusChange change) {
  status_changes_.push_back(std::move(change));
  wake();
}

void Settler::note_health(HealthChange change) {
  // Only the last one counts; with two of them the statement would take either.
  std::erase_if(health_changes_,
                [&change](const HealthChange& older) { return older.endpoint == change.endpoint; });
  health_changes_.push_back(std::move(change));
  wake();
}

void Settler::note_hold(model::EndpointId endpoint, std::string reason) {
  holds_[endpoint] = std::move(reason);
  wake();
}

void Settler::wake() {
  if (is_running_ || is_stopping_) return;
  is_running_ = true;
  tasks_.spawn(run());
}

runtime::Task<void> Settler::run() {
  // Everything that ends in this turn of the loop goes into one batch.
  runtime::Yield turn{loop_};
  co_await turn;
  while (!is_stopping_ && (!waiting_.empty() || has_changes())) {
    if (has_changes()) co_await write_changes();
    Batch batch;
    const size_t count = std::min(waiting_.size(), options_.batch_items_max);
    batch.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      batch.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
    if (batch.empty()) continue;
    std::sort(batch.begin(), batch.end(), [](const Settlement& a, const Settlement& b) {
      return std::pair(a.lane->bucket, a.row.id()) < std::pair(b.lane->bucket, b.row.id());
    });
    writing_ = batch.size();
    metrics_.batch_size.at("settle").observe(static_cast<double>(batch.size()));
    co_await write(std::move(batch), Repeat::no);
    writing_ = 0;
  }
  is_running_ = false;
}

// Writes the batch whatever it takes: again when the database was away or busy, in halves when an item is
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
      is_item = is_items_fault(error);
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
      Batch second(std::make_move_iterator(batch.begin() + static_cast<ptrdiff_t>(batch.size() / 2)),
                   std::make_move_iterator(batch.end()));
      batch.resize(batch.size() / 2);
      co_await write(std::move(batch), repeat);
      co_await write(std::move(second), repeat);
      co_return;
    } else if (is_item && ++single_tries == kSingleTries) {
      telemetry::log_error("settle_refused")
          .field("delivery_id", batch.front().row.id().outside())
          .field("error", message);
      settled_(batch.front(), Written::refused);
      co_return;
    } else if (is_item) {
      give_up_details(batch);
      co_await pause_.wait_for(kRetryPause);
    } else {
      co_await pause_.wait_for(pause);
      pause = std::min(2 * pause, kRetryPauseMax);
    }
  }
}

runtime::Task<void> Settler::write_once(Batch& batch, Repeat repeat) {
  base::reach("settle.before_commit");
  metrics_.database_round_trips.add();
  pg::Batch out = statements(batch, options_.node_id);
  const auto deadline = base::BootClock::now() + kDatabaseWait;
  const auto answers = co_await link_.run(std::move(out), deadline);
  base::reach("settle.after_commit");
  std::vector<model::DeliveryId> settled;
  for (const pg::Rows& rows : answers)
    for (size_t i = 0; i < rows.size(); ++i) settled.push_back({rows.get<base::Uuid>(i, 0)});
  std::sort(settled.begin(), settled.end());
  tell(batch, settled, repeat);
}

void Settler::tell(Batch& batch, const std::vector<model::DeliveryId>& settled, Repeat repeat) {
  for (Settlement& settlement : batch) {
    const bool is_written = std::binary_search(settled.begin(), settled.end(), settlement.row.id());
    const bool is_repeat = repeat == Repeat::yes && !settlement.lane->is_gone;
    if (!is_written && !is_repeat) metrics_.late_settles_dropped.add();
    settled_(settlement, is_written ? Written::now : is_repeat ? Written::before : Written::late);
  }
}

// A single settlement that Postgres refuses for its data: what is for people goes, the outcome stays.
void Settler::give_up_details(Batch& batch) {
  for (Settlement& settlement : batch) {
    settlement.facts.preview.reset();
    settlement.facts.error_detail.reset();
    settlement.facts.address.reset();
  }
}

runtime::Task<bool> Settler::make_partitions(const Batch& batch) {
  std::set<std::string> days;
  for (const Settlement& settlement : batch) days.insert(day_of(settlement.row.id()));
  const std::vector<std::string> wanted(days.begin(), days.end());
  pg::Batch make;
  make.add(sql::limit_lock_wait).with(sql::make_partitions_of, wanted);
  try {
    const auto deadline = base::BootClock::now() + kDatabaseWait;
    co_await link_.run(std::move(make), deadline);
  } catch (const pg::Error& error) {
    telemetry::log_warn("make_partitions_failed").field("error", error.what());
    co_return is_items_fault(error);
  }
  co_return true;
}

runtime::Task<void> Settler::write_changes() {
  const bool are_noted = co_await write_notes();
  const bool are_changed = co_await write_statuses();
  const bool has_failed = !are_noted || !are_changed;
  if (has_failed && !is_stopping_) co_await pause_.wait_for(kRetryPause);
}

runtime::Task<bool> Settler::write_notes() {
  pg::Batch out;
  const auto healths = std::exchange(health_changes_, {});  // one per endpoint
  if (!healths.empty()) {
    pg::Params params;
    params.add(std::views::transform(healths, [](const HealthChange& c) { return c.endpoint.uuid; }));
    params.add(std::views::transform(healths, [](const HealthChange& c) { return c.is_failing; }));
    params.add(
        std::views::transform(healths, [](const HealthChange& c) { return std::string_view(c.breaker); }));
    params.add(std::views::transform(healths, [](const HealthChange& c) { return c.at; }));
    params.add(std::views::transform(healths, [](const HealthChange& c) { return c.failures; }));
    params.add(std::views::transform(healths, [](const HealthChange& c) { return c.probe_error; }));
    out.add(sql::note_health, std::move(params));
  }
  auto holds = std::exchange(holds_, {});
  if (!holds.empty())
    out.with(sql::note_holds, std::views::keys(holds) | std::views::transform(&model::EndpointId::uuid),
             std::views::values(holds), options_.node_id.uuid);
  if (healths.empty() && holds.empty()) co_return true;
  try {
    const auto deadline = base::BootClock::now() + kDatabaseWait;
    co_await link_.run(std::move(out), deadline);
  } catch (const pg::Error& error) {
    telemetry::log_warn("endpoint_change_failed").field("error", error.what());
    // Both are noted only when they change.
    const bool is_passing = !is_items_fault(error);
    for (const HealthChange& change : healths)
      if (is_passing) note_health_unless_newer(change);
    if (is_passing) holds_.merge(holds);  // what was noted meanwhile stays
    co_return false;
  }
  co_return true;
}

// Each in a transaction of its own: it holds the registry's version to its end, and who changes another
// endpoint asks for that with the endpoint in hand.
runtime::Task<bool> Settler::write_statuses() {
  auto statuses = std::exchange(status_changes_, {});
  for (auto next = statuses.begin(); next != statuses.end(); ++next) {
    const bool is_done = co_await write_status(*next);
    if (is_done) continue;
    status_changes_.insert(status_changes_.begin(), std::make_move_iterator(next),
                           std::make_move_iterator(statuses.end()));
    co_return false;
  }
  co_return true;
}

// True also for one that Postgres does not take: the next answer of that kind brings it up again.
runtime::Task<bool> Settler::write_status(const StatusChange& change) {
  pg::Batch out;
  const bool is_disable = change.what == Verdict::Endpoint::disable;
  out.with(is_disable ? sql::disable_endpoint : sql::pause_endpoint, change.endpoint.uuid, change.reason);
  try {
    const auto deadline = base::BootClock::now() + kDatabaseWait;
    co_await link_.run(std::move(out), deadline);
  } catch (const pg::Error& error) {
    telemetry::log_warn("endpoint_change_failed").field("error", error.what());
    co_return is_items_fault(error);
  }
  co_return true;
}

void Settler::note_health_unless_newer(const HealthChange& change) {
  const auto is_same = [&](const HealthChange& other) { return other.endpoint == change.endpoint; };
  if (std::none_of(health_changes_.begin(), health_changes_.end(), is_same))
    health_changes_.push_back(change);
}

runtime::Task<void> Settler::drain(base::SteadyTime deadline) {
  base::SteadyTime up_at = base::BootClock::now();
  while (waiting() > 0 && base::BootClock::now() < deadline) {
    if (link_.is_up()) up_at = base::BootClock::now();
    if (base::BootClock::now() - up_at > kAwayMax) break;
    co_await draining_.wait_for(5ms);
  }
}

runtime::Task<void> Settler::stop() {
  is_stopping_ = true;
  pause_.notify();
  co_await tasks_.join();
}

}  // namespace postrider::delivery
