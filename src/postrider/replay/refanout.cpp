#include "postrider/replay/refanout.hpp"

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

}  // namespace

void Standing::add_refused(int64_t line, const std::string& why) {
  ++refused;
  if (first_refused.size() < kShownMax)
    first_refused.push_back(place + ", line " + std::to_string(line) + ": " + why);
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
  const auto filled = co_await link_.run_one(sql::fill_sentinels);
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

// They end with the session; until then they are kept alive.
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
  const auto rows = co_await link_.run_one(sql::kept_since);
  const KeptSince kept{rows.get<base::Timestamp>(0, 0), rows.get<base::Timestamp>(0, 1)};
  co_return kept;
}

Task<Standing> Refanout::stand(std::string place) {
  Standing standing;
  standing.place = std::move(place);
  const std::string tenant = text_of(range_.tenant);
  pg::Params which(range_.since, range_.until, tenant, standing.place);
  const auto rows = co_await link_.run_one(sql::unfinished, std::move(which));
  if (!rows.empty()) {
    standing.after_id = rows.get<std::optional<base::Uuid>>(0, 0);
    standing.after_endpoint = rows.get<std::optional<base::Uuid>>(0, 1);
    standing.after_time = rows.get<std::optional<base::Timestamp>>(0, 2);
    standing.after_row = rows.get<int64_t>(0, 3);
    standing.looked_at = rows.get<int64_t>(0, 4);
    standing.queued = rows.get<int64_t>(0, 5);
    standing.is_resumed = true;
  } else if (!options_.is_dry) {
    pg::Params begun(range_.since, range_.until, tenant, standing.place);
    co_await link_.run_one(sql::begin_refanout, std::move(begun));
  }
  tell(standing);
  co_return standing;
}

pg::Batch Refanout::move_batch(const Standing& standing, const Step& step) const {
  pg::Batch batch;
  batch.with(sql::move_refanout, range_.since, range_.until, text_of(range_.tenant), standing.place,
             standing.after_id, standing.after_endpoint, standing.after_time, standing.after_row,
             step.looked_at, step.queued, step.is_last);
  lease_.fence(batch);
  if (holds_retention_) retention_lease_.fence(batch);
  return batch;
}

Task<void> Refanout::move(Standing& standing, Step step) {
  if (!options_.is_dry) {
    pg::Batch batch = move_batch(standing, step);
    co_await link_.run(std::move(batch));
  }
  standing.looked_at += step.looked_at;
  standing.queued += step.queued;
  tell(standing);
  co_await rest(step.queued);
}

void Refanout::tell(const Standing& standing) const {
  if (progress_) progress_(standing);
}

// So that sending, and not this, decides how much is under way.
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
  enum Column : size_t { read, last, matched, queued, last_event, last_endpoint, done };
  pg::Batch batch;
  batch.with(sql::refan_out, range_.tenant, standing.after_id.value_or(ids.from),
             standing.after_endpoint.value_or(base::Uuid{}), ids.below, options_.step_events_max,
             options_.step_deliveries_max, options_.is_dry);
  const auto answers = co_await transaction.run(std::move(batch));
  const pg::Rows& rows = answers.front();
  Step step;
  step.queued = rows.get<int64_t>(0, queued);
  step.looked_at = rows.get<int64_t>(0, done);
  if (rows.get<int64_t>(0, matched) == options_.step_deliveries_max) {
    // Not all of what was looked at has been matched: the next step begins at the last match.
    standing.after_id = rows.get<base::Uuid>(0, last_event);
    standing.after_endpoint = rows.get<base::Uuid>(0, last_endpoint);
    co_return step;
  }
  step.is_last = rows.get<int64_t>(0, read) < options_.step_events_max;
  if (const auto end = rows.get<std::optional<base::Uuid>>(0, last)) {
    standing.after_id = *end;
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
  // Retention has removed the attempts of events between the two, whether they were delivered or not.
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
    standing.looked_at += step.looked_at;
    standing.queued += step.queued;
    tell(standing);
    auto resting = rest(step.queued);
    co_await resting;
  } while (!step.is_last);
  co_return standing;
}

// Brings events back; returns the range of their ids, empty if there are none.
Task<Refanout::Ids> Refanout::restore(pg::Transaction& transaction, const std::string& rows) {
  const base::Uuid from = model::id_floor(range_.since), below = model::id_floor(range_.until);
  pg::Batch batch;
  batch.with(sql::make_days, rows, range_.tenant, from, below);
  batch.with(sql::restore_events, rows, range_.tenant, from, below);
  const auto answers = co_await transaction.run(std::move(batch));
  Ids ids;
  if (answers[1].get<int64_t>(0, 0) == 0) co_return ids;
  ids.from = answers[1].get<base::Uuid>(0, 2);
  ids.below = successor(answers[1].get<base::Uuid>(0, 3));
  co_return ids;
}

// Lines that are one step of reading may be several of making deliveries: a wide event has many. The lines
// count as read with the last of them.
Task<void> Refanout::fan_out_rows(const std::string& rows, Standing& standing, int64_t lines) {
  Ids ids;
  Standing within;
  within.place = standing.place;
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
      counted.looked_at = lines;
    }
    if (options_.is_dry) {
      co_await transaction.rollback();
    } else {
      pg::Batch moved = move_batch(standing, counted);
      co_await transaction.run(std::move(moved));
      co_await transaction.commit();
    }
    standing.looked_at += counted.looked_at;
    standing.queued += counted.queued;
    tell(standing);
    auto resting = rest(step.queued);
    co_await resting;
  } while (!step.is_last);
}

Task<void> Refanout::publish_rows(const std::string& rows, Standing& standing, int64_t lines) {
  auto transaction = co_await link_.begin();
  if (!options_.is_dry) {
    pg::Batch forget;
    forget.with(sql::forget_keys_of_rows, rows);
    co_await transaction.run(std::move(forget));
  }
  pg::Batch batch;
  batch.with(sql::publish_rows, rows, range_.tenant, range_.since, range_.until, options_.is_dry);
  const auto answers = co_await transaction.run(std::move(batch));
  const Step step{lines, answers.front().get<int64_t>(0, 0), false};
  standing.after_row += lines;
  if (!options_.is_dry) {
    pg::Batch moved = move_batch(standing, step);
    co_await transaction.run(std::move(moved));
  }
  co_await transaction.commit();
  standing.looked_at += step.looked_at;
  standing.queued += step.queued;
  tell(standing);
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
        standing.add_refused(standing.after_row + lines, fault);
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
  pg::Params params(named.tenants, named.events);
  const auto rows = co_await link_.run_one(sql::lost_events, std::move(params));
  std::vector<size_t> places;
  Named gone;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto place = static_cast<size_t>(rows.get<int64_t>(i, 0)) - 1;
    places.push_back(place);
    gone.tenants.push_back(named.tenants[place]);
    gone.events.push_back(named.events[place]);
  }
  if (!options_.is_dry && !places.empty()) {
    pg::Params keys(gone.tenants, gone.events);
    co_await link_.run_one(sql::forget_keys, std::move(keys));
  }
  co_return places;
}

base::Timestamp time_of(const base::Uuid& id) {
  int64_t ms = 0;
  for (size_t i = 0; i < 6; ++i) ms = ms << 8 | id.bytes[i];
  return base::Timestamp(std::chrono::milliseconds(ms));
}

Task<std::optional<base::Timestamp>> unfinished_until(pg::Link& link, RefanoutRange range) {
  pg::Params params(range.since, text_of(range.tenant));
  const auto rows = co_await link.run_one(sql::unfinished_until, std::move(params));
  std::optional<base::Timestamp> until;
  if (!rows.empty()) until = rows.get<base::Timestamp>(0, 0);
  co_return until;
}

}  // namespace postrider::replay
