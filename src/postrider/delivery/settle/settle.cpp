#include "postrider/delivery/settle/settle.hpp"

#include <algorithm>
#include <optional>
#include <ranges>
#include <set>
#include <utility>

#include "postrider/base/check.hpp"
#include "postrider/base/fail_point.hpp"
#include "postrider/delivery/settle/dead_letter.sql.hpp"
#include "postrider/delivery/settle/outage_clock.hpp"
#include "postrider/delivery/settle/settle.sql.hpp"
#include "postrider/model/id_time.hpp"
#include "postrider/pg/error.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::delivery {

namespace {

using namespace std::chrono_literals;
using Settlements = std::vector<const Settlement*>;

// However long it takes. An item that Postgres rejects is tried five times, the others must not wait for it.
constexpr pg::CommitPolicy kPolicy{
    .pauses = {.min = 50ms, .max = 1'000ms}, .splits_other_errors = true, .rejections_max = 5};
constexpr auto kDatabaseWait = 60s;

// One array parameter: a member of each item. A view, so nothing is copied before the statement is encoded.
template <class Get>
auto column(const Settlements& items, Get get) {
  return std::views::transform(items, [get](const Settlement* item) { return get(*item); });
}

std::optional<std::string_view> view(const std::optional<std::string>& text) {
  return text ? std::optional<std::string_view>(*text) : std::nullopt;
}

// Which items have each of the optional columns; the others pass them empty.
struct Extra {
  const Settlements& errors;
  const Settlements& retries;
  const Settlements& letters;
};

// The three statements have the same parameters.
template <pg::Query S>
pg::Pending<S> add(pg::Batch& out, model::NodeId node, const Settlements& items, const Extra& extra) {
  return out.add(
      S{.node = node.uuid,
        .buckets = column(items, [](const Settlement& s) { return s.lane->bucket; }),
        .ids = column(items, [](const Settlement& s) { return s.row.id().uuid; }),
        .epochs = column(items, [](const Settlement& s) { return s.lane->epoch; }),
        .attempts_before = column(items, [](const Settlement& s) { return s.row.attempts; }),
        .status_codes = column(items, [](const Settlement& s) { return s.facts.status_code; }),
        .started_at = column(items, [](const Settlement& s) { return s.facts.started_at; }),
        .lookup_us = column(items, [](const Settlement& s) { return s.facts.lookup_us; }),
        .connect_us = column(items, [](const Settlement& s) { return s.facts.connect_us; }),
        .tls_us = column(items, [](const Settlement& s) { return s.facts.tls_us; }),
        .first_byte_us = column(items, [](const Settlement& s) { return s.facts.first_byte_us; }),
        .total_us = column(items, [](const Settlement& s) { return s.facts.total_us; }),
        .previews = column(items, [](const Settlement& s) { return view(s.facts.preview); }),
        .addresses = column(items, [](const Settlement& s) { return view(s.facts.address); }),
        .errors = column(extra.errors, [](const Settlement& s) { return view(s.facts.error); }),
        .error_details = column(extra.errors, [](const Settlement& s) { return view(s.facts.error_detail); }),
        .due_at = column(extra.retries, [](const Settlement& s) { return s.verdict.retry_at; }),
        .are_retries = column(extra.retries, [](const Settlement& s) { return !s.lane->is_strict(); }),
        .causes = column(extra.letters, [](const Settlement& s) { return label(s.verdict.cause); }),
        .are_exchanges = column(extra.letters, [](const Settlement& s) { return s.facts.is_exchange; }),
        .probes_before = column(items, [](const Settlement& s) { return s.row.probes; }),
        .are_probes = column(items, [](const Settlement& s) { return s.is_probe; }),
        .are_extra = column(extra.retries, [](const Settlement& s) { return s.is_failed_probe(); }),
        .url_versions = column(items, [](const Settlement& s) { return s.facts.url_version; }),
        .send_us = column(items, [](const Settlement& s) { return s.facts.send_us; }),
        .bytes_sent = column(items, [](const Settlement& s) { return s.facts.bytes_sent; }),
        .bytes_received = column(items, [](const Settlement& s) { return s.facts.bytes_received; }),
        .flags = column(items, [](const Settlement& s) { return s.facts.flags(); }),
        .content_types = column(items, [](const Settlement& s) { return view(s.facts.content_type); }),
        .response_headers =
            column(extra.errors, [](const Settlement& s) { return view(s.facts.response_headers); })});
}

template <pg::Query S>
void collect(pg::Results& results, const std::optional<pg::Pending<S>>& pending,
             std::vector<model::DeliveryId>& settled) {
  if (!pending) return;
  for (const auto& row : results.take(*pending)) settled.push_back({row.delivery_id});
}

}  // namespace

struct Settler::Statements {
  pg::Batch batch;
  std::optional<pg::Pending<sql::delivered>> delivered;
  std::optional<pg::Pending<sql::retrying>> retrying;
  std::optional<pg::Pending<sql::dead_letter>> dead_letter;
};

Settler::Settler(runtime::Loop& loop, pg::Link& link, const Metrics& metrics, SettlerOptions options)
    : loop_(loop),
      link_(link),
      metrics_(metrics),
      options_(options),
      batcher_({.items_max = options.batch_items_max},
               [this](Batch batch) { return flush(std::move(batch)); }),
      commit_(loop, kPolicy),
      idle_(loop) {
  batcher_.on_idle([this] { idle_.notify(); });
}

bool SettlementWrite::await_ready() const noexcept {
  return settler_.is_stopping_;
}

// Everything that ends in this turn of the loop goes into one batch.
void SettlementWrite::await_suspend(std::coroutine_handle<> waiting) {
  waiting_ = waiting;
  settler_.batcher_.add(this, {});
  settler_.batcher_.start_next_turn(settler_.loop_);
}

void Settler::finish(SettlementWrite& write, Written written) {
  write.written_ = written;
  write.waiting_.resume();
}

// Sorted by bucket and id: two settles that lock rows in the same order cannot deadlock.
runtime::Task<void> Settler::flush(Batch batch) {
  metrics_.settle_batch_items.observe(static_cast<double>(batch.size()));
  std::sort(batch.begin(), batch.end(), [](const SettlementWrite* one, const SettlementWrite* other) {
    const Settlement &a = one->settlement_, &b = other->settlement_;
    return std::pair(a.lane->bucket, a.row.id()) < std::pair(b.lane->bucket, b.row.id());
  });
  co_await commit_.run(*this, batch);
}

Settler::Statements Settler::statements(Items batch) const {
  Settlements delivered, retrying, dead_letters;
  for (const SettlementWrite* writing : batch) {
    switch (writing->settlement_.verdict.kind) {
      case Verdict::Kind::delivered:
        delivered.push_back(&writing->settlement_);
        break;
      case Verdict::Kind::retrying:
        retrying.push_back(&writing->settlement_);
        break;
      case Verdict::Kind::dead_letter:
        dead_letters.push_back(&writing->settlement_);
        break;
    }
  }
  const Settlements none;
  const model::NodeId node = options_.node_id;
  Statements out;
  if (!delivered.empty()) out.delivered = add<sql::delivered>(out.batch, node, delivered, {none, none, none});
  if (!retrying.empty())
    out.retrying = add<sql::retrying>(out.batch, node, retrying, {retrying, retrying, none});
  if (!dead_letters.empty())
    out.dead_letter =
        add<sql::dead_letter>(out.batch, node, dead_letters, {dead_letters, none, dead_letters});
  return out;
}

runtime::Task<void> Settler::write(Items batch, pg::CommitAttempt attempt) {
  base::reach("settle.before_commit");
  metrics_.database_round_trips.add();
  Statements out = statements(batch);
  std::vector<model::DeliveryId> settled;
  try {
    const auto deadline = base::BootClock::now() + kDatabaseWait;
    pg::Results results = co_await link_.run(std::move(out.batch), deadline);
    base::reach("settle.after_commit");
    collect(results, out.delivered, settled);
    collect(results, out.retrying, settled);
    collect(results, out.dead_letter, settled);
  } catch (const pg::Error& error) {
    telemetry::log_warn("settle_failed")
        .field("kind", pg::to_string(error.kind()))
        .field("items", batch.size())
        .field("error", error.what());
    throw;
  }
  std::sort(settled.begin(), settled.end());
  report(batch, settled, attempt.may_be_committed);
}

// A settlement that may have been committed before finds its row gone, and was written by that attempt;
// unless the lane is gone, too, and the row belongs to another node.
void Settler::report(Items batch, const std::vector<model::DeliveryId>& settled, bool may_be_committed) {
  for (SettlementWrite* writing : batch) {
    const Settlement& settlement = writing->settlement_;
    const bool is_written = std::binary_search(settled.begin(), settled.end(), settlement.row.id());
    const bool is_repeat = may_be_committed && !settlement.lane->is_gone();
    if (!is_written && !is_repeat) metrics_.late_settles_dropped.add();
    finish(*writing, is_written ? Written::now : is_repeat ? Written::before : Written::late);
  }
}

// Postgres rejects a single settlement for its data. The outcome is kept, the details for people are left
// out.
void Settler::simplify(SettlementWrite* const& item) {
  AttemptFacts& facts = item->settlement_.facts;
  facts.preview.reset();
  facts.content_type.reset();
  facts.response_headers.reset();
  facts.error_detail.reset();
  facts.address.reset();
}

runtime::Task<void> Settler::reject(SettlementWrite* const& item, const pg::Error& error) {
  telemetry::log_error("settle_refused")
      .field("delivery_id", item->settlement_.row.id().public_id())
      .field("error", error.what());
  finish(*item, Written::rejected);
  co_return;
}

runtime::Task<pg::Repair> Settler::repair(Items batch, const pg::Error& error) {
  if (!pg::is_missing_partition(error)) co_return pg::Repair::none;
  std::set<std::string> days;
  for (const SettlementWrite* writing : batch)
    days.insert(base::to_rfc3339(model::day_of(writing->settlement_.row.id().uuid)).substr(0, 10));
  const std::vector<std::string> wanted(days.begin(), days.end());
  pg::Batch make;
  make.add(sql::limit_lock_wait{});
  make.add(sql::make_partitions_of{.days = wanted});
  try {
    const auto deadline = base::BootClock::now() + kDatabaseWait;
    co_await link_.run(std::move(make), deadline);
  } catch (const pg::Error& failure) {
    telemetry::log_warn("make_partitions_failed").field("error", failure.what());
    if (!failure.is_permanent()) co_return pg::Repair::later;
  }
  co_return pg::Repair::done;
}

void Settler::give_up(Items batch, const pg::Error&, pg::CommitAttempt) {
  for (SettlementWrite* writing : batch) finish(*writing, Written::abandoned);
}

runtime::Task<void> Settler::drain(base::SteadyTime deadline) {
  OutageClock outage(link_);
  while (waiting() > 0 && base::BootClock::now() < deadline && !outage.is_too_long()) {
    const auto next_look = OutageClock::next_look(deadline);
    co_await idle_.wait_until(next_look);
  }
}

void Settler::abandon() {
  is_stopping_ = true;
  commit_.cancel();
}

// Settlements that still wait form batches as well; these are dropped.
runtime::Task<void> Settler::stop() {
  abandon();
  commit_.end_pause();
  co_await batcher_.drain();
}

}  // namespace postrider::delivery
