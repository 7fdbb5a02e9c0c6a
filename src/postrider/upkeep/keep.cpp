#include "postrider/upkeep/keep.hpp"

#include <optional>
#include <utility>
#include <vector>

#include "postrider/upkeep/keep.sql.hpp"

namespace postrider::upkeep {

namespace {

using runtime::Task;

// Few enough that the planner finds each of them by its key, however large the day is.
constexpr int kRowsPerMove = 500;
constexpr int kRowsPerTrim = 2'000;

std::vector<base::Uuid> read_ids(const pg::RowList<sql::NeededRow>& rows) {
  std::vector<base::Uuid> ids;
  for (const auto& row : rows) ids.push_back(row.id);
  return ids;
}

// Finds the needed rows of one day, page by page, and keeps them.
class NeededRows {
 public:
  NeededRows(pg::Link& link, Day day, std::string copy)
      : link_(link), day_(std::move(day)), copy_(std::move(copy)) {}

  Task<int64_t> keep() {
    if (day_.parent == "dead_letter" && !copy_.empty()) {
      co_await keep_ids({});  // the copy command itself finds the unresolved ones
    } else {
      if (day_.parent != "dead_letter") co_await keep_pending();
      co_await keep_others();
    }
    co_return kept_;
  }

 private:
  bool is_event() const { return day_.parent == "event"; }
  std::string day_table() const { return "postrider." + (copy_.empty() ? day_.parent + "_day" : day_.name); }

  // The IDs of original deliveries start like the ID of their event, so they are found by bucket and ID.
  Task<void> keep_pending() {
    const auto buckets = co_await link_.run(sql::buckets_in_use{.from = day_.low, .before = day_.high});
    for (const auto& row : buckets) co_await keep_pending_of(row.bucket);
  }

  // The last row of a page comes again as the first of the next one.
  Task<void> keep_pending_of(int32_t bucket) {
    base::Uuid from = day_.low;
    size_t count = 0;
    do {
      const auto page = co_await link_.run(sql::deliveries_in_bucket{
          .bucket = bucket, .from = from, .before = day_.high, .rows = kRowsPerMove});
      count = page.size();
      if (count == 0) break;
      std::vector<base::Uuid> ids;
      for (const auto& row : page) {
        ids.push_back(is_event() ? row.event_id : row.id);
        from = row.id;
      }
      co_await keep_ids(std::move(ids));
    } while (count == static_cast<size_t>(kRowsPerMove));
  }

  Task<void> keep_others() {
    base::Uuid from = day_.low;
    size_t count = 0;
    do {
      auto finding = find_others(from);
      std::vector<base::Uuid> ids = co_await finding;
      count = ids.size();
      if (count == 0) break;
      from = ids.back();
      co_await keep_ids(std::move(ids));
    } while (count == static_cast<size_t>(kRowsPerMove));
  }

  Task<std::vector<base::Uuid>> find_others(base::Uuid from) {
    const std::string table = day_table();
    const base::Uuid before = day_.high;
    pg::RowList<sql::NeededRow> rows;
    if (is_event())
      rows = co_await link_.run(
          sql::needed_events{.from = from, .before = before, .rows = kRowsPerMove, .day_table = table});
    else if (day_.parent == "attempt")
      rows = co_await link_.run(
          sql::needed_attempts{.from = from, .before = before, .rows = kRowsPerMove, .day_table = table});
    else
      rows =
          co_await link_.run(sql::needed_dead_letters{.from = from, .before = before, .rows = kRowsPerMove});
    co_return read_ids(rows);
  }

  Task<void> keep_ids(std::vector<base::Uuid> ids) {
    const base::Uuid from = day_.low, before = day_.high;
    if (!copy_.empty()) {
      pg::Params params(ids);
      const auto copied = co_await link_.connection().execute(copy_, std::move(params));
      kept_ += copied.affected_rows();
    } else if (is_event()) {
      const auto moved = co_await link_.run(sql::move_events{.ids = ids, .from = from, .before = before});
      kept_ += moved.affected_rows();
    } else if (day_.parent == "attempt") {
      const auto moved = co_await link_.run(sql::move_attempts{.ids = ids, .from = from, .before = before});
      kept_ += moved.affected_rows();
    } else {
      const auto moved =
          co_await link_.run(sql::move_dead_letters{.ids = ids, .from = from, .before = before});
      kept_ += moved.affected_rows();
    }
  }

  pg::Link& link_;
  Day day_;
  std::string copy_;  // empty: the day is attached, and its rows are moved
  int64_t kept_ = 0;
};

// Page by page to the end.
template <class Statement>
Task<int64_t> trim_pages(pg::Link& link, Statement statement) {
  int64_t deleted = 0;
  std::optional<base::Uuid> after = base::Uuid{};
  statement.rows = kRowsPerTrim;
  while (after) {
    statement.after = *after;
    const auto rows = co_await link.run(statement);
    const auto row = rows.front();
    after = row.last_id;
    deleted += row.deleted;
  }
  co_return deleted;
}

}  // namespace

Task<int64_t> move_needed(pg::Link& link, Day day) {
  NeededRows needed(link, std::move(day), "");
  auto keeping = needed.keep();
  co_return co_await keeping;
}

Task<int64_t> copy_needed(pg::Link& link, Day day, std::string copy) {
  NeededRows needed(link, std::move(day), std::move(copy));
  auto keeping = needed.keep();
  co_return co_await keeping;
}

Task<void> raise_kept_since(pg::Link& link, KeptTimes times) {
  co_await link.run(sql::raise_kept_since{.events_seconds = times.events.count(),
                                          .attempts_seconds = times.attempts.count()});
}

Task<int64_t> trim_kept(pg::Link& link, KeptTimes times) {
  sql::trim_kept_attempts attempts{};
  attempts.retain_seconds = times.attempts.count();
  sql::trim_kept_dead_letters dead_letters{};
  dead_letters.retain_seconds = times.events.count();
  int64_t deleted = co_await trim_pages(link, sql::trim_kept_events{});
  deleted += co_await trim_pages(link, attempts);
  deleted += co_await trim_pages(link, dead_letters);
  deleted += co_await trim_pages(link, sql::trim_event_keys{});
  deleted += co_await trim_pages(link, sql::trim_replayed{});
  co_return deleted;
}

}  // namespace postrider::upkeep
