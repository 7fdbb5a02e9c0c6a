#include "postrider/outbox/other_database.hpp"

#include <algorithm>
#include <memory>

#include "postrider/base/fail_point.hpp"
#include "postrider/outbox/relay.sql.hpp"
#include "postrider/outbox/validator.hpp"
#include "postrider/telemetry/log.hpp"
#include "postrider/upkeep/archive.hpp"

namespace postrider::outbox {

namespace {
using runtime::Task;

constexpr int32_t kRemovedMax = 1'000;          // per statement
constexpr size_t kArchivedMax = 100'000;        // per file
constexpr int64_t kArchivedBytesMax = 4 << 20;  // per statement
constexpr std::chrono::seconds kTidyMax{3};

// "20260408T101530". Of this machine: what another server sends must not name a file.
std::string now_for_name() {
  const auto now = std::chrono::floor<std::chrono::seconds>(base::wall_now());
  std::string text = base::to_rfc3339(now);
  std::erase_if(text, [](char c) { return c == '-' || c == ':' || c == 'Z'; });
  return text;
}

struct Sent {
  int64_t id;
  Position position;
  std::string tenant;
  base::Timestamp written_at;
};
struct Sorted {
  std::vector<Failure> failures;
  std::vector<int64_t> published;
  std::vector<base::Timestamp> times;  // when those were written
  std::map<std::string, Position> throttled;
  std::string later;  // why, if there are any
};

void sort(const std::vector<SinkResult>& outcomes, const std::vector<Sent>& sent, Sorted& sorted) {
  CHECK(outcomes.size() == sent.size());
  for (size_t i = 0; i < outcomes.size(); ++i) {
    switch (outcomes[i].kind) {
      case SinkResult::Kind::published:
        sorted.published.push_back(sent[i].id);
        sorted.times.push_back(sent[i].written_at);
        break;
      case SinkResult::Kind::rejected:
        sorted.failures.push_back({.id = sent[i].id, .error = outcomes[i].detail});
        break;
      case SinkResult::Kind::throttled:
        sorted.throttled.emplace(sent[i].tenant, sent[i].position);
        break;
      case SinkResult::Kind::later:
        sorted.later = outcomes[i].detail;
        break;
    }
  }
}

}  // namespace

OtherDatabaseDrainer::OtherDatabaseDrainer(std::string name, pg::Link& link, Sink& sink, OutboxMetrics series,
                                           DrainLimits limits)
    : name_(std::move(name)),
      link_(link),
      sink_(sink),
      series_(series),
      limits_(std::move(limits)),
      held_(limits_.rows_max) {}

Task<bool> OtherDatabaseDrainer::drain_fresh(Window& window) {
  held_.skip_from(window.first_unread());
  const bool has_moved = co_await drain_held();
  const Tenants held = held_.names();
  pg::Batch batch = fresh_batch(window, limits_, held);
  fence(batch, limits_);
  const auto answers = co_await link_.run(std::move(batch));
  auto late = read_rows(answers[1]);
  auto fresh = read_rows(answers[2]);
  std::vector<OutboxRow> rows = late;
  rows.insert(rows.end(), fresh.begin(), fresh.end());
  if (!rows.empty()) {
    const Moved moved = co_await move(std::move(rows));
    hold(moved.throttled);
  }
  window.read(snapshot_of(answers[0]), late, fresh);
  co_return has_moved || !late.empty() || !fresh.empty();
}

Task<bool> OtherDatabaseDrainer::drain_held() {
  const auto turn = held_.next(base::BootClock::now());
  if (!turn) co_return false;
  pg::Batch batch;
  batch.add(sql::held_rows{.data_bytes_max = kDataBytesMax,
                           .xid = std::to_string(turn->from.xid),
                           .id = turn->from.id,
                           .tenant = turn->tenant,
                           .rows_max = turn->rows,
                           .bytes_max = limits_.bytes_max});
  fence(batch, limits_);
  const auto answers = co_await link_.run(std::move(batch));
  auto rows = read_rows(answers[0]);
  if (rows.empty()) {
    held_.release(turn->tenant);
    co_return false;
  }
  const Position last{rows.back().xid, rows.back().id};
  const Moved moved = co_await move(std::move(rows));
  const auto throttled = moved.throttled.find(turn->tenant);
  const bool is_throttled = throttled != moved.throttled.end();
  const HeldTenants::Moved progress{.published = moved.published,
                                    .next = is_throttled ? throttled->second : last,
                                    .is_throttled = is_throttled};
  held_.moved(turn->tenant, progress, base::BootClock::now());
  co_return moved.published > 0 || !is_throttled;
}

void OtherDatabaseDrainer::hold(const Throttled& throttled) {
  const auto now = base::BootClock::now();
  for (const auto& [tenant, first] : throttled)
    if (!held_.hold(tenant, first, now))
      throw pg::Error(pg::Kind::unavailable, "too many tenants publish too fast");
}

Task<bool> OtherDatabaseDrainer::drain_failed() {
  if (stuck_ != nullptr) {
    co_await stuck_->report();
  }
  const Tenants held = held_.names();
  pg::Batch batch = failed_batch(limits_, held);
  fence(batch, limits_);
  const auto answers = co_await link_.run(std::move(batch));
  auto rows = read_rows(answers[0]);
  if (rows.empty()) co_return false;
  const Moved moved = co_await move(std::move(rows));
  hold(moved.throttled);
  co_return true;
}

Task<void> OtherDatabaseDrainer::tidy() {
  try {
    co_await remove_old();
  } catch (const pg::Error&) {
    throw;
  } catch (const std::runtime_error& error) {
    telemetry::log_warn("outbox_not_archived").field("outbox", name_).field("error", error.what());
  }
}

// For a while: the lease is to be kept, and there is another minute.
Task<void> OtherDatabaseDrainer::remove_old() {
  const auto deadline = base::BootClock::now() + kTidyMax;
  bool is_more = true;
  while (is_more && base::BootClock::now() < deadline) {
    if (!limits_.archive_dir.empty()) {
      is_more = co_await archive_old(deadline);
      continue;
    }
    pg::Batch batch;
    batch.add(sql::remove_processed{.seconds = limits_.retain.count(), .rows_max = kRemovedMax});
    fence(batch, limits_);
    const auto answers = co_await link_.run(std::move(batch));
    is_more = answers[0].affected_rows() == kRemovedMax;
  }
}

// The file is complete and on disk before the first of its rows goes. A crash in between archives them again.
Task<bool> OtherDatabaseDrainer::archive_old(base::SteadyTime deadline) {
  std::unique_ptr<upkeep::ArchiveFile> file;
  std::vector<int64_t> ids;
  base::Timestamp last_at{};
  int64_t last = 0;
  size_t count = 0;
  do {
    const auto rows = co_await link_.run(sql::old_rows{.row_bytes_max = kDataBytesMax,
                                                       .seconds = limits_.retain.count(),
                                                       .after_time = last_at,
                                                       .after_id = last,
                                                       .rows_max = kRemovedMax,
                                                       .bytes_max = kArchivedBytesMax});
    count = rows.size();
    if (count > 0 && !file)
      file = std::make_unique<upkeep::ArchiveFile>(limits_.archive_dir,
                                                   "outbox_" + name_ + "_" + now_for_name());
    for (const auto& row : rows) {
      file->add_line(row.line);
      ids.push_back(row.id);
      last_at = row.processed_at;
      last = row.id;
    }
  } while (count > 0 && ids.size() < kArchivedMax && base::BootClock::now() < deadline);
  if (!file) co_return false;
  file->finish();
  for (size_t at = 0; at < ids.size(); at += kRemovedMax) {
    const size_t end = std::min(ids.size(), at + kRemovedMax);
    const std::vector<int64_t> some(ids.begin() + static_cast<ptrdiff_t>(at),
                                    ids.begin() + static_cast<ptrdiff_t>(end));
    pg::Batch batch;
    batch.add(sql::remove_rows{.ids = some});
    fence(batch, limits_);
    co_await link_.run(std::move(batch));
  }
  telemetry::log_info("outbox_archived")
      .field("outbox", name_)
      .field("file", file->path())
      .field("rows", static_cast<int64_t>(ids.size()));
  co_return count > 0;
}

Task<OtherDatabaseDrainer::Moved> OtherDatabaseDrainer::move(std::vector<OutboxRow> rows) {
  if (limits_.validator != nullptr) co_await limits_.validator->refresh();
  Sorted sorted;
  std::vector<Sent> sent;
  std::vector<publish::NewEvent> events;
  for (OutboxRow& row : rows) {
    std::optional<std::string> error = error_of(row);
    const bool is_final = error.has_value();
    if (!error && limits_.validator != nullptr) error = limits_.validator->error_of(row.event);
    if (error) {
      sorted.failures.push_back({row.id, std::move(*error), is_final});
      continue;
    }
    // Ids made in other databases are not unique in their first ten bytes: outside they are the event's id,
    // inside it gets one of ours.
    if (!row.event.id) row.event.id = row.event.given_id->public_id();
    row.event.given_id.reset();
    sent.push_back({row.id, {row.xid, row.id}, row.event.tenant_id, *row.event.written_at});
    events.push_back(std::move(row.event));
  }
  if (!events.empty()) {
    const auto outcomes = co_await sink_.send(std::move(events));
    sort(outcomes, sent, sorted);
  }
  const Moved moved{.published = static_cast<int>(sorted.published.size()),
                    .throttled = std::move(sorted.throttled)};
  const auto now = base::wall_now();
  for (const auto& time : sorted.times)
    series_.lag_seconds.observe(std::chrono::duration<double>(now - time).count());
  const auto failed = co_await mark(std::move(sorted.failures), std::move(sorted.published));
  const auto aside = read_set_aside(failed);
  log_set_aside(name_, aside);
  if (stuck_ != nullptr) stuck_->add(aside);
  if (!sorted.later.empty())
    throw pg::Error(sink_.tells_itself() ? pg::Kind::unavailable : pg::Kind::retry,
                    "the events are not taken now: " + sorted.later);
  co_return moved;
}

Task<pg::Rows> OtherDatabaseDrainer::mark(std::vector<Failure> failures, std::vector<int64_t> published) {
  base::reach("outbox.before_mark");
  pg::Batch batch = fail_batch(failures, limits_);
  batch.add(sql::mark_processed{.ids = published});
  fence(batch, limits_);
  auto results = co_await link_.run(std::move(batch));
  base::reach("outbox.after_mark");
  series_.published.add(static_cast<double>(published.size()));
  series_.rejected.add(static_cast<double>(failures.size()));
  co_return std::move(results[0]);
}

}  // namespace postrider::outbox
