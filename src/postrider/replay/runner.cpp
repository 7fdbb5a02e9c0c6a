#include "postrider/replay/runner.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "postrider/base/check.hpp"
#include "postrider/pg/error.hpp"
#include "postrider/replay/candidates.hpp"
#include "postrider/replay/runner.sql.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::replay {

namespace {

using namespace std::chrono_literals;
using base::SteadyTime;
using runtime::Task;

constexpr auto kFailurePause = 5s;
constexpr double kBurstSeconds = 0.2;  // of its rate that a replay may have saved up

// A replay that this node holds. Its allowance starts empty, so a takeover can only slow it down.
struct Held {
  model::ReplayId id;
  Range range;
  double rate_per_second = 50;
  bool is_counted = false;
  double allowance = 0;  // deliveries that may be made now
  SteadyTime filled_at{};
  SteadyTime renewed_at{};
  SteadyTime rest_until{};  // after a failure
  bool is_over = false;

  void fill(SteadyTime now, double most) {
    const double seconds = std::chrono::duration<double>(now - filled_at).count();
    allowance = std::min(most, allowance + seconds * rate_per_second);
    filled_at = now;
  }
};

Held read_held(const sql::take_replay::Row& row, SteadyTime now) {
  Held held;
  held.id = {row.id};
  held.range.tenant = row.tenant_id;
  const auto scope = parse_scope(row.scope);
  if (!scope) throw pg::Error(pg::Kind::other, "a replay has an unknown scope");
  held.range.scope = *scope;
  if (row.endpoint_id) held.range.endpoint = model::EndpointId{*row.endpoint_id};
  if (row.event_types) held.range.event_types.emplace(row.event_types->begin(), row.event_types->end());
  if (row.causes) held.range.causes.emplace(row.causes->begin(), row.causes->end());
  held.range.deliveries = row.delivery_ids;
  held.range.since = row.since;
  held.range.until = row.until;
  held.rate_per_second = row.rate_per_second;
  held.is_counted = row.is_counted;
  held.filled_at = held.renewed_at = now;
  return held;
}

// The result of a step.
struct Step {
  bool is_counted = false;
  int64_t matched = 0, queued = 0;
  std::optional<Cursor> next;  // none: counting is complete, and the search starts again
  bool is_done = false;
};

// The arrays of queue_replays.
struct CandidateColumns {
  explicit CandidateColumns(const std::vector<Candidate>& candidates) {
    for (const Candidate& candidate : candidates) {
      events.push_back(candidate.event);
      endpoints.push_back(candidate.endpoint);
      origins.push_back(candidate.origin);
      if (!candidate.origin) continue;
      if (origin_min.is_nil() || *candidate.origin < origin_min) origin_min = *candidate.origin;
      origin_max = std::max(origin_max, *candidate.origin);
    }
  }
  std::vector<base::Uuid> events, endpoints;
  std::vector<std::optional<base::Uuid>> origins;
  base::Uuid origin_min, origin_max;
};

}  // namespace

void RunnerOptions::validate() const {
  CHECK(lease_seconds > 0 && replays_max > 0 && step_deliveries_max > 0 && step_rows_max > 0);
  CHECK(poll > 0ms && pace > 0ms);
}

struct ReplayRunner::State {
  State(const ReplayRunner& runner_service, pg::Link& database, RunnerOptions runner_options)
      : service(runner_service), link(database), options(runtime::validated(runner_options)) {}

  const ReplayRunner& service;
  pg::Link& link;
  RunnerOptions options;
  base::UniqueFunction<void()> on_committed;
  std::vector<Held> held;
  SteadyTime look_at{};

  Task<SteadyTime> run_steps(SteadyTime now);
  Task<void> take(SteadyTime now);
  Task<void> renew(SteadyTime now);
  Task<bool> step(Held& replay);
  Task<Step> search(pg::Transaction& transaction, const Held& replay, const sql::hold_replay::Row& held_row);
  Task<int64_t> queue(pg::Transaction& transaction, const Held& replay,
                      const std::vector<Candidate>& candidates);
  std::vector<base::Uuid> ids() const;
};

std::vector<base::Uuid> ReplayRunner::State::ids() const {
  std::vector<base::Uuid> ids;
  for (const Held& replay : held) ids.push_back(replay.id.uuid);
  return ids;
}

Task<SteadyTime> ReplayRunner::State::run_steps(SteadyTime now) {
  if (now >= look_at) {
    look_at = now + options.poll;
    co_await take(now);
    co_await renew(now);
  }
  SteadyTime next = look_at;
  for (Held& replay : held) {
    if (service.is_stopping()) break;
    replay.fill(now, std::max(1.0, kBurstSeconds * replay.rate_per_second));
    if (now < replay.rest_until || (replay.is_counted && replay.allowance < 1)) {
      next = std::min<SteadyTime>(next, now + options.pace);
      continue;
    }
    bool has_more = true;
    try {
      auto stepping = step(replay);
      has_more = co_await stepping;
    } catch (const pg::Error& error) {
      if (error.kind() == pg::Kind::unavailable || error.kind() == pg::Kind::unknown) throw;
      replay.rest_until = now + kFailurePause;  // the others continue
      telemetry::log_warn("replay_failed")
          .field("replay_id", replay.id.public_id())
          .field("error", error.what());
    }
    if (has_more) next = std::min<SteadyTime>(next, now + (replay.allowance < 1 ? options.pace : 0ms));
    if (replay.is_over) look_at = now;  // the tenant's next one may start
  }
  std::erase_if(held, [](const Held& replay) { return replay.is_over; });
  if (look_at <= now) next = now;
  co_return next;
}

Task<void> ReplayRunner::State::take(SteadyTime now) {
  while (held.size() < static_cast<size_t>(options.replays_max)) {
    const std::vector<base::Uuid> held_ids = ids();
    const auto rows = co_await link.run(sql::take_replay{
        .node = options.node_id.uuid, .held = held_ids, .lease_seconds = options.lease_seconds});
    if (rows.empty()) break;
    held.push_back(read_held(rows.front(), now));
    telemetry::log_info("replay_taken")
        .field("replay_id", held.back().id.public_id())
        .field("tenant_id", held.back().range.tenant);
  }
}

Task<void> ReplayRunner::State::renew(SteadyTime now) {
  const auto is_due = [&](const Held& replay) {
    return now - replay.renewed_at > std::chrono::seconds(options.lease_seconds) / 3;
  };
  if (std::none_of(held.begin(), held.end(), is_due)) co_return;
  const std::vector<base::Uuid> held_ids = ids();
  co_await link.run(sql::renew_replays{
      .lease_seconds = options.lease_seconds, .replays = held_ids, .node = options.node_id.uuid});
  for (Held& replay : held) replay.renewed_at = now;
}

Task<int64_t> ReplayRunner::State::queue(pg::Transaction& transaction, const Held& replay,
                                         const std::vector<Candidate>& candidates) {
  const CandidateColumns columns(candidates);
  const auto rows = co_await transaction.run(sql::queue_replays{.events = columns.events,
                                                                .endpoints = columns.endpoints,
                                                                .origins = columns.origins,
                                                                .origin_min = columns.origin_min,
                                                                .origin_max = columns.origin_max,
                                                                .tenant = replay.range.tenant,
                                                                .replay = replay.id.uuid});
  co_return rows.front().queued;
}

// Scans the next rows. The first pass counts the matches, the second creates their deliveries.
Task<Step> ReplayRunner::State::search(pg::Transaction& transaction, const Held& replay,
                                       const sql::hold_replay::Row& held_row) {
  Step step;
  step.is_counted = held_row.is_counted;
  Cursor from = start_of(replay.range);
  if (held_row.after_id) {
    from.id = *held_row.after_id;
    from.endpoint = held_row.after_endpoint.value_or(base::Uuid{});
  }
  Look look{.rows_max = options.step_rows_max, .candidates_max = options.step_rows_max};
  if (step.is_counted)
    look.candidates_max = std::clamp(static_cast<int>(replay.allowance), 1, options.step_deliveries_max);
  auto searching = find_candidates(transaction, replay.range, from, look);
  const Found found = co_await searching;
  step.next = found.next;
  if (!step.is_counted) {
    step.matched = static_cast<int64_t>(found.candidates.size());
    step.is_counted = found.is_last;
    if (found.is_last) step.next.reset();
    co_return step;
  }
  step.is_done = found.is_last;
  if (found.candidates.empty()) co_return step;
  auto queueing = queue(transaction, replay, found.candidates);
  step.queued = co_await queueing;
  co_return step;
}

// True: there is more to do. Otherwise sets is_over.
Task<bool> ReplayRunner::State::step(Held& replay) {
  pg::Transaction transaction = co_await link.begin();
  const auto held_rows =
      co_await transaction.run(sql::hold_replay{.replay = replay.id.uuid, .node = options.node_id.uuid});
  if (held_rows.empty()) {
    co_await transaction.rollback();
    replay.is_over = true;
    co_return false;
  }
  const auto held_row = held_rows.front();
  auto searching = search(transaction, replay, held_row);
  const Step step = co_await searching;
  std::optional<base::Uuid> after_id, after_endpoint;
  if (step.next) {
    after_id = step.next->id;
    after_endpoint = step.next->endpoint;
  }
  co_await transaction.run(sql::move_replay{.lease_seconds = options.lease_seconds,
                                            .is_counted = step.is_counted,
                                            .is_complete = step.is_done,
                                            .more_queued = step.queued,
                                            .more_matched = step.matched,
                                            .after_id = after_id,
                                            .after_endpoint = after_endpoint,
                                            .replay = replay.id.uuid});
  co_await transaction.commit();
  replay.is_counted = step.is_counted;
  replay.is_over = step.is_done;
  replay.renewed_at = base::BootClock::now();
  replay.allowance -= static_cast<double>(step.queued);
  if (step.queued > 0 && on_committed) on_committed();
  if (step.is_done) telemetry::log_info("replay_completed").field("replay_id", replay.id.public_id());
  co_return !step.is_done;
}

ReplayRunner::ReplayRunner(runtime::Loop& loop, pg::Link& link, RunnerOptions options)
    : Service(loop), state_(std::make_unique<State>(*this, link, options)) {}
ReplayRunner::~ReplayRunner() = default;

void ReplayRunner::on_committed(base::UniqueFunction<void()> callback) {
  state_->on_committed = std::move(callback);
}

Task<SteadyTime> ReplayRunner::pass(SteadyTime now) {
  State& state = *state_;
  try {
    const SteadyTime next = co_await state.run_steps(now);
    co_return next;
  } catch (const pg::Error& error) {
    state.held.clear();  // the progress is in the rows, which are taken again
    state.look_at = {};
    if (error.kind() != pg::Kind::unavailable)
      telemetry::log_warn("replay_failed").field("error", error.what());
  }
  co_return now + state.options.poll;
}

Task<void> ReplayRunner::finish() {
  State& state = *state_;
  if (state.held.empty() || !state.link.is_up()) co_return;
  try {
    const std::vector<base::Uuid> ids = state.ids();
    co_await state.link.run(sql::release_replays{.replays = ids, .node = state.options.node_id.uuid});
  } catch (const pg::Error& error) {
    telemetry::log_warn("replay_failed").field("error", error.what());  // the lease will expire
  }
}

}  // namespace postrider::replay
