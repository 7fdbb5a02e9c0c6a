#include "postrider/outbox/same_database.hpp"

#include "postrider/base/fail_point.hpp"
#include "postrider/outbox/relay.sql.hpp"
#include "postrider/outbox/validator.hpp"

namespace postrider::outbox {

namespace {

using runtime::Task;

std::vector<int64_t> ids_of(const std::vector<OutboxRow>& rows) {
  std::vector<int64_t> ids;
  for (const OutboxRow& row : rows) ids.push_back(row.id);
  return ids;
}

// Without the message: its details quote the row.
std::string rejection_of(const pg::Error& error) {
  std::string text = "the database rejects it (SQLSTATE " + error.sqlstate();
  if (!error.constraint().empty()) text += ", " + error.constraint();
  return text + ")";
}

double seconds_between(base::Timestamp from, base::Timestamp to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

SameDatabaseDrainer::SameDatabaseDrainer(runtime::Loop& loop, pg::Link& link, publish::EventWriter& writer,
                                         OutboxMetrics series, DrainLimits limits)
    : link_(link),
      writer_(writer),
      series_(series),
      limits_(std::move(limits)),
      stuck_("local", link),
      commit_(loop, kOutboxCommits) {}

void SameDatabaseDrainer::set_aside(const pg::Rows& failed) {
  const auto rows = read_set_aside(failed);
  log_set_aside("local", rows);
  stuck_.add(rows);
}

Task<bool> SameDatabaseDrainer::drain_fresh(Window& window) {
  if (limits_.validator != nullptr) co_await limits_.validator->refresh();
  auto transaction = co_await link_.begin();
  pg::Batch batch = fresh_batch(window, limits_);
  const auto answers = co_await transaction.run(std::move(batch));
  auto late = read_rows(answers[1]);
  auto fresh = read_rows(answers[2]);
  std::vector<OutboxRow> rows = late;
  rows.insert(rows.end(), fresh.begin(), fresh.end());
  if (rows.empty()) {
    co_await transaction.rollback();
  } else {
    Chunk chunk{std::move(transaction), std::move(rows)};
    co_await drain_all(std::move(chunk));
  }
  window.read(snapshot_of(answers[0]), late, fresh);
  co_return !late.empty() || !fresh.empty();
}

Task<bool> SameDatabaseDrainer::drain_failed() {
  co_await stuck_.report();
  if (limits_.validator != nullptr) co_await limits_.validator->refresh();
  auto transaction = co_await link_.begin();
  pg::Batch batch = failed_batch(limits_);
  const auto answers = co_await transaction.run(std::move(batch));
  auto rows = read_rows(answers[0]);
  if (rows.empty()) {
    co_await transaction.rollback();
    co_return false;
  }
  Chunk chunk{std::move(transaction), std::move(rows)};
  co_await drain_all(std::move(chunk));
  co_return true;
}

Task<void> SameDatabaseDrainer::drain_all(Chunk chunk) {
  const auto ids = ids_of(chunk.rows);
  first_.emplace(std::move(chunk));
  co_await commit_.run(*this, ids);
}

// The first attempt has its rows already. Its transaction is lost if it fails, and the rows are read again.
Task<void> SameDatabaseDrainer::write(Items ids, pg::CommitAttempt) {
  if (first_) {
    Chunk chunk = std::move(*first_);
    first_.reset();
    co_await move(std::move(chunk));
    co_return;
  }
  Chunk chunk = co_await read_listed(ids);
  if (chunk.rows.empty())
    co_await chunk.transaction.rollback();
  else
    co_await move(std::move(chunk));
}

Task<SameDatabaseDrainer::Chunk> SameDatabaseDrainer::read_listed(Items ids) {
  auto transaction = co_await link_.begin();
  Chunk chunk{std::move(transaction), {}};
  pg::Batch batch;
  batch.add(sql::listed_rows{.data_bytes_max = kDataBytesMax, .ids = ids});
  const auto answers = co_await chunk.transaction.run(std::move(batch));
  chunk.rows = read_rows(answers[0]);
  co_return chunk;
}

Task<void> SameDatabaseDrainer::move(Chunk chunk) {
  auto& [transaction, rows] = chunk;
  std::vector<Failure> failures;
  std::vector<int64_t> written, published;
  std::vector<publish::NewEvent> events;
  std::vector<base::Timestamp> times;
  for (OutboxRow& row : rows) {
    std::optional<std::string> error = error_of(row);
    const bool is_final = error.has_value();
    if (!error && limits_.validator != nullptr) error = limits_.validator->error_of(row.event);
    if (error) {
      failures.push_back({row.id, std::move(*error), is_final});
      continue;
    }
    written.push_back(row.id);
    times.push_back(*row.event.written_at);
    events.push_back(std::move(row.event));
  }
  if (!events.empty()) {
    const auto answers = co_await writer_.write(transaction, std::move(events));
    for (size_t i = 0; i < answers.size(); ++i) {
      if (const auto* rejected = std::get_if<publish::Rejected>(&answers[i]))
        failures.push_back({.id = written[i], .error = rejected->detail});
      else
        published.push_back(written[i]);
    }
  }
  pg::Batch batch = fail_batch(failures, limits_);
  batch.add(sql::remove_rows{.ids = published});
  fence(batch, limits_);
  const auto results = co_await transaction.run(std::move(batch));
  base::reach("outbox.before_commit");
  try {
    co_await transaction.commit();
  } catch (const pg::Error& error) {
    if (error.kind() == pg::Kind::unknown) writer_.unknown();
    throw;
  }
  base::reach("outbox.after_commit");
  writer_.committed();
  series_.published.add(static_cast<double>(published.size()));
  series_.rejected.add(static_cast<double>(failures.size()));
  const auto now = base::wall_now();
  for (const auto& time : times) series_.lag_seconds.observe(seconds_between(time, now));
  set_aside(results[0]);
}

// In a transaction of its own: the one that failed was rolled back as a whole.
Task<void> SameDatabaseDrainer::reject(const int64_t& id, const pg::Error& error) {
  std::vector<Failure> failures;
  failures.push_back({.id = id, .error = rejection_of(error)});
  pg::Batch batch = fail_batch(failures, limits_);
  fence(batch, limits_);
  const auto results = co_await link_.run(std::move(batch));
  series_.rejected.add();
  set_aside(results[0]);
}

Task<pg::Repair> SameDatabaseDrainer::repair(Items, const pg::Error& error) {
  const bool is_done = co_await writer_.repair(error);
  co_return is_done ? pg::Repair::done : pg::Repair::none;
}

void SameDatabaseDrainer::give_up(Items, const pg::Error& error, pg::CommitAttempt) {
  throw pg::Error(error);
}

}  // namespace postrider::outbox
