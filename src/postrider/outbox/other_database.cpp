#include "postrider/outbox/other_database.hpp"

#include "postrider/base/fail_point.hpp"
#include "postrider/outbox/relay.sql.hpp"

namespace postrider::outbox {

namespace {
using runtime::Task;

constexpr int32_t kRemovedMax = 1'000;  // per statement

}  // namespace

OtherDatabaseMover::OtherDatabaseMover(std::string name, pg::Link& link, Sink& sink,
                                       telemetry::OutboxSeries series, MoveLimits limits)
    : name_(std::move(name)), link_(link), sink_(sink), series_(series), limits_(std::move(limits)) {}

Task<bool> OtherDatabaseMover::move_fresh(Window& window) {
  pg::Batch batch = fresh_batch(window, limits_);
  const auto answers = co_await link_.run(std::move(batch));
  auto late = read_rows(answers[1]);
  auto fresh = read_rows(answers[2]);
  std::vector<Row> rows = late;
  rows.insert(rows.end(), fresh.begin(), fresh.end());
  if (!rows.empty()) {
    auto moved = move(std::move(rows));
    co_await moved;
  }
  window.read(answers[0].get<std::string_view>(0, 0), late, fresh);
  co_return !late.empty() || !fresh.empty();
}

Task<bool> OtherDatabaseMover::move_failed() {
  pg::Batch batch;
  batch.with(sql::failed_rows, limits_.rows_max);
  const auto answers = co_await link_.run(std::move(batch));
  auto rows = read_rows(answers[0]);
  if (rows.empty()) co_return false;
  auto moved = move(std::move(rows));
  co_await moved;
  co_return true;
}

Task<void> OtherDatabaseMover::tidy() {
  int64_t removed = 0;
  do {
    pg::Params params(static_cast<int64_t>(limits_.retain.count()), kRemovedMax);
    const auto rows = co_await link_.run_one(sql::remove_processed, std::move(params));
    removed = rows.affected_rows();
  } while (removed == kRemovedMax);
}

Task<void> OtherDatabaseMover::move(std::vector<Row> rows) {
  std::vector<Failure> failures;
  std::vector<int64_t> sent, published;
  std::vector<base::Timestamp> written, times;
  std::vector<publish::NewEvent> events;
  for (Row& row : rows) {
    std::string fault = check_data(row);
    if (!fault.empty()) {
      failures.push_back({row.id, std::move(fault)});
      continue;
    }
    // Ids made in other databases are not unique in their first ten bytes: outside they are the event's id,
    // inside it gets one of ours.
    if (!row.event.id) row.event.id = row.event.given_id->outside();
    row.event.given_id.reset();
    sent.push_back(row.id);
    written.push_back(*row.event.written_at);
    events.push_back(std::move(row.event));
  }
  std::string later;
  if (!events.empty()) {
    auto sending = sink_.send(std::move(events));
    const auto outcomes = co_await sending;
    CHECK(outcomes.size() == sent.size());
    for (size_t i = 0; i < outcomes.size(); ++i) {
      if (outcomes[i].kind == Outcome::Kind::published) {
        published.push_back(sent[i]);
        times.push_back(written[i]);
      } else if (outcomes[i].kind == Outcome::Kind::refused) {
        failures.push_back({sent[i], outcomes[i].detail});
      } else {
        later = outcomes[i].detail;
      }
    }
  }
  const auto now = base::wall_now();
  for (const auto& time : times)
    series_.lag_seconds.observe(std::chrono::duration<double>(now - time).count());
  base::reach("outbox.before_mark");
  pg::Batch batch = fail_batch(failures, limits_);
  batch.with(sql::mark_processed, published);
  const auto results = co_await link_.run(std::move(batch));
  base::reach("outbox.after_mark");
  series_.published.add(static_cast<double>(published.size()));
  series_.refused.add(static_cast<double>(failures.size()));
  tell_set_aside(name_, read_set_aside(results[0]));
  if (!later.empty())
    throw pg::Error(sink_.tells_itself() ? pg::Kind::unavailable : pg::Kind::retry,
                    "the events are not taken now: " + later);
}

}  // namespace postrider::outbox
