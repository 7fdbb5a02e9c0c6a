#include "postrider/upkeep/keep.hpp"

#include <optional>
#include <utility>
#include <vector>

#include "postrider/upkeep/keep.sql.hpp"

namespace postrider::upkeep {

namespace {

using runtime::Task;

// Few enough for the planner to look each of them up by its key, however large the day is.
constexpr int kRowsPerMove = 500;
constexpr int kRowsPerTrim = 2'000;

pg::Statement move_statement(const std::string& parent) {
  if (parent == "event") return sql::move_events;
  return parent == "attempt" ? sql::move_attempts : sql::move_dead_letters;
}

// Finds what is needed of one day, page by page, and keeps it.
class NeededRows {
 public:
  NeededRows(pg::Link& link, Day day, std::string copy)
      : link_(link), day_(std::move(day)), copy_(std::move(copy)) {}

  Task<int64_t> keep() {
    if (day_.parent == "dead_letter" && !copy_.empty()) {
      co_await keep_ids({});  // the detached table itself knows which are unresolved
    } else if (day_.parent == "dead_letter") {
      co_await keep_pages(sql::needed_dead_letters, source(), 0);
    } else {
      co_await keep_pending();
      const pg::Statement other = is_event() ? sql::needed_events : sql::needed_attempts;
      co_await keep_pages(other, source(), 0);
    }
    co_return kept_;
  }

 private:
  bool is_event() const { return day_.parent == "event"; }
  std::string source() const { return "postrider." + (copy_.empty() ? day_.parent + "_day" : day_.name); }

  // Original deliveries begin like their event, so they are found by bucket and id.
  Task<void> keep_pending() {
    pg::Params range(day_.low, day_.high);
    const pg::Rows buckets = co_await link_.run_one(sql::buckets_in_use, std::move(range));
    const size_t column = is_event() ? 1 : 0;
    for (size_t i = 0; i < buckets.size(); ++i) {
      const int bucket = buckets.get<int32_t>(i, 0);
      co_await keep_pages(sql::deliveries_in_bucket, bucket, column);
    }
  }

  // The first column of a page says how far it came; its last row comes again with the next page. `of` is the
  // statement's last parameter, `column` has the ids to keep.
  template <class Of>
  Task<void> keep_pages(pg::Statement needed, Of of, size_t column) {
    base::Uuid from = day_.low;
    size_t count = 0;
    do {
      pg::Params params(from, day_.high, kRowsPerMove, of);
      const pg::Rows page = co_await link_.run_one(needed, std::move(params));
      count = page.size();
      std::vector<base::Uuid> ids;
      for (size_t i = 0; i < count; ++i) ids.push_back(page.get<base::Uuid>(i, column));
      if (count == 0) break;
      from = page.get<base::Uuid>(count - 1, 0);
      co_await keep_ids(std::move(ids));
    } while (count == static_cast<size_t>(kRowsPerMove));
  }

  Task<void> keep_ids(std::vector<base::Uuid> ids) {
    pg::Rows kept;
    if (copy_.empty()) {
      pg::Params params(ids, day_.low, day_.high);
      kept = co_await link_.run_one(move_statement(day_.parent), std::move(params));
    } else {
      pg::Params params(ids);
      kept = co_await link_.connection().execute(copy_, std::move(params));
    }
    kept_ += kept.affected_rows();
  }

  pg::Link& link_;
  Day day_;
  std::string copy_;  // empty: the day is attached and its rows are moved
  int64_t kept_ = 0;
};

// Page by page to the end. The statement returns the last id of the page and how many rows it deleted.
template <class... Values>
Task<int64_t> trim_pages(pg::Link& link, pg::Statement statement, Values... values) {
  int64_t deleted = 0;
  std::optional<base::Uuid> after = base::Uuid{};
  while (after) {
    pg::Params params(*after, kRowsPerTrim, values...);
    const pg::Rows row = co_await link.run_one(statement, std::move(params));
    after = row.get<std::optional<base::Uuid>>(0, 0);
    deleted += row.get<int64_t>(0, 1);
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
  pg::Params params(int64_t{times.events.count()}, int64_t{times.attempts.count()});
  co_await link.run_one(sql::raise_kept_since, std::move(params));
}

Task<int64_t> trim_kept(pg::Link& link, KeptTimes times) {
  const int64_t events = times.events.count(), attempts = times.attempts.count();
  int64_t deleted = co_await trim_pages(link, sql::trim_kept_events);
  deleted += co_await trim_pages(link, sql::trim_kept_attempts, attempts);
  deleted += co_await trim_pages(link, sql::trim_kept_dead_letters, events);
  deleted += co_await trim_pages(link, sql::trim_event_keys);
  deleted += co_await trim_pages(link, sql::trim_replayed);
  co_return deleted;
}

}  // namespace postrider::upkeep
