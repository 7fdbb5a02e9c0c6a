#include "postrider/outbox/same_database.hpp"

#include "postrider/base/fail_point.hpp"
#include "postrider/outbox/judge.hpp"
#include "postrider/outbox/relay.sql.hpp"

namespace postrider::outbox {

namespace {

using runtime::Task;

constexpr int kRepairsMax = 3;  // of one batch: its partitions made, its tenants made

std::vector<int64_t> ids_of(const std::vector<Row>& rows) {
  std::vector<int64_t> ids;
  for (const Row& row : rows) ids.push_back(row.id);
  return ids;
}

// Without the message: its details quote the row.
std::string refusal_of(const pg::Error& error) {
  std::string text = "the database refuses it (SQLSTATE " + error.sqlstate();
  if (!error.constraint().empty()) text += ", " + error.constraint();
  return text + ")";
}

double seconds_between(base::Timestamp from, base::Timestamp to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

SameDatabaseMover::SameDatabaseMover(pg::Link& link, publish::EventWriter& writer,
                                     telemetry::OutboxSeries series, MoveLimits limits)
    : link_(link), writer_(writer), series_(series), limits_(std::move(limits)), stuck_("local", link) {}

void SameDatabaseMover::set_aside(const pg::Rows& failed) {
  const auto rows = read_set_aside(failed);
  tell_set_aside("local", rows);
  stuck_.add(rows);
}

Task<bool> SameDatabaseMover::move_fresh(Window& window) {
  co_await settle_unsure();
  if (limits_.judge != nullptr) co_await limits_.judge->refresh();
  auto transaction = co_await link_.begin();
  pg::Batch batch = fresh_batch(window, limits_);
  const auto answers = co_await transaction.run(std::move(batch));
  auto late = read_rows(answers[1]);
  auto fresh = read_rows(answers[2]);
  std::vector<Row> rows = late;
  rows.insert(rows.end(), fresh.begin(), fresh.end());
  if (rows.empty()) {
    co_await transaction.rollback();
  } else {
    auto moved = move_or_halve(std::move(transaction), std::move(rows));
    co_await moved;
  }
  window.read(answers[0].get<std::string_view>(0, 0), late, fresh);
  co_return !late.empty() || !fresh.empty();
}

Task<bool> SameDatabaseMover::move_failed() {
  co_await settle_unsure();
  auto reporting = stuck_.report();
  co_await reporting;
  if (limits_.judge != nullptr) co_await limits_.judge->refresh();
  auto transaction = co_await link_.begin();
  pg::Batch batch = failed_batch(limits_);
  const auto answers = co_await transaction.run(std::move(batch));
  auto rows = read_rows(answers[0]);
  if (rows.empty()) {
    co_await transaction.rollback();
    co_return false;
  }
  auto moved = move_or_halve(std::move(transaction), std::move(rows));
  co_await moved;
  co_return true;
}

Task<void> SameDatabaseMover::settle_unsure() {
  if (!is_unsure_) co_return;
  auto task = writer_.unsure();
  co_await task;
  is_unsure_ = false;
}

Task<void> SameDatabaseMover::move_or_halve(pg::Transaction transaction, std::vector<Row> rows) {
  const auto ids = ids_of(rows);
  std::optional<pg::Error> error;
  try {
    auto moved = move(std::move(transaction), std::move(rows));
    co_await moved;
  } catch (const pg::Error& failure) {
    if (failure.kind() != pg::Kind::item && failure.kind() != pg::Kind::retry) throw;
    error = failure;
  }
  if (!error) {
    repairs_ = 0;
    co_return;
  }
  bool is_repaired = false;
  if (repairs_ < kRepairsMax) {
    auto repair = writer_.repair(*error);
    is_repaired = co_await repair;
  }
  if (is_repaired) {
    ++repairs_;
    auto again = move_listed(ids);
    co_await again;
  } else if (error->kind() == pg::Kind::item) {
    auto halves = move_halves(ids, refusal_of(*error));
    co_await halves;
  } else {
    throw pg::Error(*error);
  }
}

Task<void> SameDatabaseMover::move(pg::Transaction transaction, std::vector<Row> rows) {
  std::vector<Failure> failures;
  std::vector<int64_t> written, published;
  std::vector<publish::NewEvent> events;
  std::vector<base::Timestamp> times;
  for (Row& row : rows) {
    std::string fault = fault_of(row);
    const bool is_final = !fault.empty();
    if (fault.empty() && limits_.judge != nullptr) fault = limits_.judge->fault_of(row.event);
    if (!fault.empty()) {
      failures.push_back({row.id, std::move(fault), is_final});
      continue;
    }
    written.push_back(row.id);
    times.push_back(*row.event.written_at);
    events.push_back(std::move(row.event));
  }
  if (!events.empty()) {
    auto writing = writer_.write(transaction, std::move(events));
    const auto answers = co_await writing;
    for (size_t i = 0; i < answers.size(); ++i) {
      if (const auto* refused = std::get_if<publish::Refused>(&answers[i]))
        failures.push_back({.id = written[i], .error = refused->detail});
      else
        published.push_back(written[i]);
    }
  }
  pg::Batch batch = fail_batch(failures, limits_);
  batch.with(sql::remove_rows, published);
  fence(batch, limits_);
  const auto results = co_await transaction.run(std::move(batch));
  base::reach("outbox.before_commit");
  try {
    co_await transaction.commit();
  } catch (const pg::Error& error) {
    is_unsure_ = error.kind() == pg::Kind::unknown;
    throw;
  }
  base::reach("outbox.after_commit");
  writer_.committed();
  series_.published.add(static_cast<double>(published.size()));
  series_.refused.add(static_cast<double>(failures.size()));
  const auto now = base::wall_now();
  for (const auto& time : times) series_.lag_seconds.observe(seconds_between(time, now));
  set_aside(results[0]);
}

Task<void> SameDatabaseMover::move_halves(std::vector<int64_t> ids, std::string why) {
  if (ids.size() == 1) {
    // In a transaction of its own: the one that failed has taken everything with it.
    std::vector<Failure> failures;
    failures.push_back({.id = ids.front(), .error = std::move(why)});
    pg::Batch batch = fail_batch(failures, limits_);
    fence(batch, limits_);
    const auto results = co_await link_.run(std::move(batch));
    series_.refused.add();
    set_aside(results[0]);
    co_return;
  }
  const auto middle = ids.begin() + static_cast<ptrdiff_t>(ids.size() / 2);
  auto first = move_listed(std::vector<int64_t>(ids.begin(), middle));
  co_await first;
  auto second = move_listed(std::vector<int64_t>(middle, ids.end()));
  co_await second;
}

Task<void> SameDatabaseMover::move_listed(std::vector<int64_t> ids) {
  auto transaction = co_await link_.begin();
  pg::Batch batch;
  batch.with(sql::listed_rows, ids, kDataBytesMax);
  const auto answers = co_await transaction.run(std::move(batch));
  auto rows = read_rows(answers[0]);
  if (rows.empty()) {
    co_await transaction.rollback();
    co_return;
  }
  auto moved = move_or_halve(std::move(transaction), std::move(rows));
  co_await moved;
}

}  // namespace postrider::outbox
