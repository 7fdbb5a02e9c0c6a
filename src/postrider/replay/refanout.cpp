#include "postrider/replay/refanout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "postrider/replay/archived_line.hpp"
#include "postrider/replay/candidates.hpp"
#include "postrider/replay/refanout.sql.hpp"

namespace postrider::replay {

namespace {

using runtime::Task;

constexpr std::chrono::milliseconds kStall{60'000}, kRetentionPoll{500};

std::string text_of(const std::optional<model::TenantId>& tenant) {
  return tenant.value_or("");
}

void add_missing(Standing& standing, const sql::refan_out::Row& row) {
  for (size_t i = 0; i < row.events.size(); ++i)
    standing.first_missing.push_back(
        fmt::format("{} {} -> {}", row.tenants[i], row.events[i], row.endpoints[i]));
}

}  // namespace

void Standing::add_rejected(int64_t line, const std::string& why) {
  ++rejected;
  if (std::ssize(first_rejected) < kShownMax)
    first_rejected.push_back(origin + ", line " + std::to_string(line) + ": " + why);
}

Refanout::Refanout(runtime::Loop& loop, pg::Link& link, RefanoutRange range, RefanoutOptions options)
    : loop_(loop),
      link_(link),
      lease_(link, {.name = "refanout", .owner = "refanout", .stall = kStall}),
      retention_lease_(link, {.name = "retention", .owner = "refanout", .stall = kStall}),
      range_(std::move(range)),
      options_(options) {}

Task<bool> Refanout::begin() {
  auto taking = lease_.hold();
  const bool is_ours = co_await taking;
  if (!is_ours) co_return false;
  if (options_.is_dry) co_return true;
  const auto filled = co_await link_.run(sql::fill_sentinels{});
  if (filled.affected_rows() > 0) co_await link_.connection().execute("analyze queue");
  co_return true;
}

// Waits for a pass of retention to end.
Task<void> Refanout::hold_retention() {
  runtime::Wakeup pause(loop_);
  while (!holds_retention_) {
    auto taking = retention_lease_.hold();
    holds_retention_ = co_await taking;
    if (!holds_retention_) co_await pause.wait_for(kRetentionPoll);
  }
}

// The leases end with the session.
Task<void> Refanout::keep_leases() {
  auto holding = lease_.hold();
  bool is_ours = co_await holding;
  if (is_ours && holds_retention_) {
    auto standing_still = retention_lease_.hold();
    is_ours = co_await standing_still;
  }
  if (!is_ours) throw pg::Error(pg::Kind::unavailable, "another session has taken over");
}

Task<Refanout::KeptSince> Refanout::kept_since() {
  const auto rows = co_await link_.run(sql::kept_since{});
  const auto row = rows.front();
  const KeptSince kept{row.events, row.attempts};
  co_return kept;
}

Task<Standing> Refanout::stand(std::string origin) {
  Standing standing;
  standing.origin = std::move(origin);
  const std::string tenant = text_of(range_.tenant);
  const auto rows = co_await link_.run(sql::unfinished{
      .since = range_.since, .until = range_.until, .tenant = tenant, .origin = standing.origin});
  if (!rows.empty()) {
    const auto row = rows.front();
    standing.after_id = row.after_id;
    standing.after_endpoint = row.after_endpoint;
    standing.after_time = row.after_time;
    standing.after_row = row.after_row;
    standing.scanned = row.scanned;
    standing.queued = row.queued;
    standing.is_resumed = true;
  } else if (!options_.is_dry) {
    co_await link_.run(sql::begin_refanout{
        .since = range_.since, .until = range_.until, .tenant = tenant, .origin = standing.origin});
  }
  report(standing);
  co_return standing;
}

pg::Batch Refanout::move_batch(const Standing& standing, const Step& step) const {
  pg::Batch batch;
  const std::string tenant = text_of(range_.tenant);
  batch.add(sql::move_refanout{.after_id = standing.after_id,
                               .after_endpoint = standing.after_endpoint,
                               .after_time = standing.after_time,
                               .after_row = standing.after_row,
                               .more_scanned = step.scanned,
                               .more_queued = step.queued,
                               .is_complete = step.is_last,
                               .since = range_.since,
                               .until = range_.until,
                               .tenant = tenant,
                               .origin = standing.origin});
  lease_.fence(batch);
  if (holds_retention_) retention_lease_.fence(batch);
  return batch;
}

Task<void> Refanout::move(Standing& standing, Step step) {
  if (!options_.is_dry) {
    pg::Batch batch = move_batch(standing, step);
    co_await link_.run(std::move(batch));
  }
  standing.scanned += step.scanned;
  standing.queued += step.queued;
  report(standing);
  co_await rest(step.queued);
}

void Refanout::report(const Standing& standing) const {
  if (progress_) progress_(standing);
}

// Waits, so that the rate of sending and not of this loop decides how much is queued.
Task<void> Refanout::rest(int64_t queued) {
  auto keeping = keep_leases();
  co_await keeping;
  if (options_.is_dry || queued == 0) co_return;
  runtime::Wakeup pause(loop_);
  const std::chrono::duration<double> wait(static_cast<double>(queued) / options_.rate_per_second);
  const auto until = base::BootClock::now() + std::chrono::duration_cast<std::chrono::milliseconds>(wait);
  while (base::BootClock::now() < until) {
    const auto next = std::min(until, base::BootClock::now() + lease_.beat_interval());
    co_await pause.wait_until(next);
    auto still = keep_leases();
    co_await still;
  }
}

// One step over the events of `ids`; moves the standing's cursor.
Task<Refanout::Step> Refanout::fan_out(pg::Transaction& transaction, Ids ids, Standing& standing) {
  const base::Uuid first = standing.after_id.value_or(ids.from);
  const base::Uuid after_endpoint = standing.after_endpoint.value_or(base::Uuid{});
  const int shown_max = Standing::kShownMax - static_cast<int>(standing.first_missing.size());
  const auto rows = co_await transaction.run(sql::refan_out{.tenant = range_.tenant,
                                                            .first = first,
                                                            .before = ids.below,
                                                            .events_max = options_.step_events_max,
                                                            .after_endpoint = after_endpoint,
                                                            .deliveries_max = options_.step_deliveries_max,
                                                            .count_only = options_.is_dry,
                                                            .shown_max = shown_max});
  const auto row = rows.front();
  add_missing(standing, row);
  Step step;
  step.queued = row.queued;
  step.scanned = row.completed;
  if (row.matched == options_.step_deliveries_max) {
    // The limit cut off the matches: the next step starts after the last one.
    standing.after_id = row.last_event;
    standing.after_endpoint = row.last_endpoint;
    co_return step;
  }
  step.is_last = row.scanned < options_.step_events_max;
  if (row.last_scanned) {
    standing.after_id = *row.last_scanned;
    standing.after_endpoint = last_uuid();
  }
  co_return step;
}

Task<Standing> Refanout::from_events() {
  auto standing_now = stand("events");
  Standing standing = co_await standing_now;
  auto asking = kept_since();
  const KeptSince kept = co_await asking;
  base::Timestamp since = std::max(range_.since, kept.events);
  // Between the two times the events exist but their attempts are gone, so it is unknown whether they were
  // delivered.
  if (kept.attempts > since && !options_.is_without_history)
    standing.unknown_before = since = std::min(kept.attempts, range_.until);
  const Ids ids{model::id_floor(since), model::id_floor(range_.until)};
  Step step;
  do {
    auto transaction = co_await link_.begin();
    auto stepping = fan_out(transaction, ids, standing);
    step = co_await stepping;
    if (!options_.is_dry) {
      pg::Batch moved = move_batch(standing, step);
      co_await transaction.run(std::move(moved));
    }
    co_await transaction.commit();
    standing.scanned += step.scanned;
    standing.queued += step.queued;
    report(standing);
    auto resting = rest(step.queued);
    co_await resting;
  } while (!step.is_last);
  co_return standing;
}

// Restores events; returns the range of their IDs, empty if there are none.
Task<Refanout::Ids> Refanout::restore(pg::Transaction& transaction, const std::string& rows) {
  const base::Uuid from = model::id_floor(range_.since), below = model::id_floor(range_.until);
  const auto [days, restored] = co_await transaction.run(
      sql::make_days{.archived = rows, .tenant = range_.tenant, .from = from, .before = below},
      sql::restore_events{.archived = rows, .tenant = range_.tenant, .from = from, .before = below});
  const auto row = restored.front();
  Ids ids;
  if (row.found == 0) co_return ids;
  ids.from = row.smallest.value();
  ids.below = successor(row.largest.value());
  co_return ids;
}

// The lines of one reading step may need several steps of creating deliveries, because one event may have
// many. The lines count as read with the last of these steps.
Task<void> Refanout::fan_out_rows(const std::string& rows, Standing& standing, int64_t lines) {
  Ids ids;
  Standing within;
  within.origin = standing.origin;
  within.first_missing = standing.first_missing;
  Step step;
  bool is_first = true;
  do {
    auto transaction = co_await link_.begin();
    if (is_first || options_.is_dry) {
      auto restoring = restore(transaction, rows);
      ids = co_await restoring;
    }
    is_first = false;
    if (ids.below.is_nil()) {
      step.is_last = true;
    } else {
      auto stepping = fan_out(transaction, ids, within);
      step = co_await stepping;
    }
    Step counted{0, step.queued, false};
    if (step.is_last) {
      standing.after_row += lines;
      counted.scanned = lines;
    }
    if (options_.is_dry) {
      co_await transaction.rollback();
    } else {
      pg::Batch moved = move_batch(standing, counted);
      co_await transaction.run(std::move(moved));
      co_await transaction.commit();
    }
    standing.first_missing = within.first_missing;
    standing.scanned += counted.scanned;
    standing.queued += counted.queued;
    report(standing);
    auto resting = rest(step.queued);
    co_await resting;
  } while (!step.is_last);
}

Task<void> Refanout::publish_rows(const std::string& rows, Standing& standing, int64_t lines) {
  auto transaction = co_await link_.begin();
  if (!options_.is_dry) {
    co_await transaction.run(sql::forget_keys_of_rows{.archived = rows});
  }
  const auto published = co_await transaction.run(sql::publish_rows{.archived = rows,
                                                                    .tenant = range_.tenant,
                                                                    .since = range_.since,
                                                                    .until = range_.until,
                                                                    .count_only = options_.is_dry});
  const Step step{lines, published.front().published, false};
  standing.after_row += lines;
  if (!options_.is_dry) {
    pg::Batch moved = move_batch(standing, step);
    co_await transaction.run(std::move(moved));
  }
  co_await transaction.commit();
  standing.scanned += step.scanned;
  standing.queued += step.queued;
  report(standing);
  auto resting = rest(step.queued);
  co_await resting;
}

Task<Standing> Refanout::from_archive(std::string file, NextLine next_line) {
  if (!options_.is_dry) co_await hold_retention();
  auto standing_now = stand("archive:" + file);
  Standing standing = co_await standing_now;
  std::string line;
  int64_t skipped = 0;
  bool has_more = true;
  while (has_more && skipped < standing.after_row) {
    has_more = next_line(line);
    ++skipped;
  }
  while (has_more) {
    std::string rows = "[";
    int64_t lines = 0;
    while (lines < options_.step_events_max && rows.size() < options_.step_bytes_max) {
      has_more = next_line(line);
      if (!has_more) break;
      ++lines;
      if (const std::string fault = fault_of_line(line); !fault.empty()) {
        standing.add_rejected(standing.after_row + lines, fault);
        continue;
      }
      if (rows.size() > 1) rows += ',';
      rows += line;
    }
    rows += ']';
    if (lines == 0) break;
    standing.is_of_rows = is_outbox_row(rows);
    auto stepping =
        standing.is_of_rows ? publish_rows(rows, standing, lines) : fan_out_rows(rows, standing, lines);
    co_await stepping;
  }
  auto ending = move(standing, {.is_last = true});
  co_await ending;
  co_return standing;
}

Task<std::vector<size_t>> Refanout::lost(Named named) {
  const auto rows = co_await link_.run(sql::lost_events{.tenants = named.tenants, .events = named.events});
  std::vector<size_t> places;
  Named gone;
  for (const auto& row : rows) {
    const auto place = static_cast<size_t>(row.place) - 1;
    places.push_back(place);
    gone.tenants.push_back(named.tenants[place]);
    gone.events.push_back(named.events[place]);
  }
  if (!options_.is_dry && !places.empty()) {
    co_await link_.run(sql::forget_keys{.tenants = gone.tenants, .events = gone.events});
  }
  co_return places;
}

Task<std::optional<base::Timestamp>> unfinished_until(pg::Link& link, RefanoutRange range) {
  const std::string tenant = text_of(range.tenant);
  const auto rows = co_await link.run(sql::unfinished_until{.since = range.since, .tenant = tenant});
  std::optional<base::Timestamp> until;
  if (!rows.empty()) until = rows.front().until;
  co_return until;
}

}  // namespace postrider::replay
