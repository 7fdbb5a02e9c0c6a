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

// A replay that this node holds. Its allowance starts empty: a takeover makes it slower, never faster.
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

Held read_held(const pg::Rows& rows, SteadyTime now) {
  Held held;
  held.id = {rows.get<base::Uuid>(0, 0)};
  held.range.tenant = rows.get<std::string>(0, 1);
  const auto scope = parse_scope(rows.get<std::string_view>(0, 2));
  if (!scope) throw pg::Error(pg::Kind::other, "a replay has an unknown scope");
  held.range.scope = *scope;
  if (const auto endpoint = rows.get<std::optional<base::Uuid>>(0, 3))
    held.range.endpoint = model::EndpointId{*endpoint};
  held.range.event_types = rows.get<std::optional<std::vector<std::string>>>(0, 4);
  held.range.causes = rows.get<std::optional<std::vector<std::string>>>(0, 5);
  held.range.deliveries = rows.get<std::optional<std::vector<base::Uuid>>>(0, 6);
  held.range.since = rows.get<base::Timestamp>(0, 7);
  held.range.until = rows.get<base::Timestamp>(0, 8);
  held.rate_per_second = rows.get<double>(0, 9);
  held.is_counted = rows.get<bool>(0, 10);
  held.filled_at = held.renewed_at = now;
  return held;
}

// What a step came to.
struct Step {
  bool is_counted = false;
  int64_t matched = 0, queued = 0;
  std::optional<Cursor> next;  // none: the pass begins anew
  bool is_done = false;
};

pg::Params queue_params(const Held& held, const std::vector<Candidate>& candidates) {
  std::vector<base::Uuid> events, endpoints;
  std::vector<std::optional<base::Uuid>> origins;
  base::Uuid first, last;
  for (const Candidate& candidate : candidates) {
    events.push_back(candidate.event);
    endpoints.push_back(candidate.endpoint);
    origins.push_back(candidate.origin);
    if (!candidate.origin) continue;
    if (first.is_nil() || *candidate.origin < first) first = *candidate.origin;
    last = std::max(last, *candidate.origin);
  }
  return pg::Params(held.id.uuid, held.range.tenant, events, endpoints, origins, first, last);
}

}  // namespace

struct ReplayRunner::State {
  State(runtime::Loop& loop_, pg::Link& link_, RunnerOptions options_)
      : loop(loop_), link(link_), options(options_), wakeup(loop_) {}

  runtime::Loop& loop;
  pg::Link& link;
  RunnerOptions options;
  base::UniqueFunction<void()> on_committed;
  std::vector<Held> held;
  SteadyTime look_at{};
  runtime::Wakeup wakeup;
  runtime::TaskGroup group;
  bool is_stopping = false;

  Task<void> run();
  Task<SteadyTime> run_once(SteadyTime now);
  Task<void> take(SteadyTime now);
  Task<void> renew(SteadyTime now);
  Task<bool> step(Held& replay);
  Task<Step> search(pg::Transaction& transaction, const Held& replay, const pg::Rows& held_row);
  std::vector<base::Uuid> ids() const;
};

std::vector<base::Uuid> ReplayRunner::State::ids() const {
  std::vector<base::Uuid> ids;
  for (const Held& replay : held) ids.push_back(replay.id.uuid);
  return ids;
}

Task<void> ReplayRunner::State::run() {
  while (!is_stopping) {
    const SteadyTime now = base::BootClock::now();
    SteadyTime next = now + options.poll;
    try {
      auto pass = run_once(now);
      next = co_await pass;
    } catch (const pg::Error& error) {
      held.clear();  // whatever was under way is in the row; it is taken again
      look_at = {};
      if (error.kind() != pg::Kind::unavailable)
        telemetry::log_warn("replay_failed").field("error", error.what());
    }
    if (!is_stopping) co_await wakeup.wait_until(next);
  }
}

Task<SteadyTime> ReplayRunner::State::run_once(SteadyTime now) {
  if (now >= look_at) {
    look_at = now + options.poll;
    co_await take(now);
    co_await renew(now);
  }
  SteadyTime next = look_at;
  for (Held& replay : held) {
    if (is_stopping) break;
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
      replay.rest_until = now + kFailurePause;  // others go on
      telemetry::log_warn("replay_failed")
          .field("replay_id", replay.id.public_id())
          .field("error", error.what());
    }
    if (has_more) next = std::min<SteadyTime>(next, now + (replay.allowance < 1 ? options.pace : 0ms));
    if (replay.is_over) look_at = now;  // the tenant's next one may begin
  }
  std::erase_if(held, [](const Held& replay) { return replay.is_over; });
  if (look_at <= now) next = now;
  co_return next;
}

Task<void> ReplayRunner::State::take(SteadyTime now) {
  while (held.size() < static_cast<size_t>(options.replays_max)) {
    pg::Params params(options.node_id.uuid, options.lease_seconds, ids());
    const pg::Rows rows = co_await link.run_one(sql::take_replay, std::move(params));
    if (rows.empty()) break;
    held.push_back(read_held(rows, now));
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
  pg::Params params(ids(), options.node_id.uuid, options.lease_seconds);
  co_await link.run_one(sql::renew_replays, std::move(params));
  for (Held& replay : held) replay.renewed_at = now;
}

// Looks at the next rows and, once everything is counted, makes deliveries of what they match.
Task<Step> ReplayRunner::State::search(pg::Transaction& transaction, const Held& replay,
                                       const pg::Rows& held_row) {
  Step step;
  step.is_counted = held_row.get<bool>(0, 0);
  Cursor from = start_of(replay.range);
  if (const auto id = held_row.get<std::optional<base::Uuid>>(0, 1)) {
    from.id = *id;
    from.endpoint = held_row.get<std::optional<base::Uuid>>(0, 2).value_or(base::Uuid{});
  }
  Look look{.rows_max = options.step_rows_max, .candidates_max = options.step_rows_max};
  if (step.is_counted)
    look.candidates_max = std::clamp(static_cast<int>(replay.allowance), 1, options.step_deliveries_max);
  pg::Batch batch;
  add_search(batch, replay.range, from, look);
  const std::vector<pg::Rows> answers = co_await transaction.run(std::move(batch));
  const Found found = read_found(answers.front(), replay.range, from, look);
  step.next = found.next;
  if (!step.is_counted) {
    step.matched = static_cast<int64_t>(found.candidates.size());
    step.is_counted = found.is_last;
    if (found.is_last) step.next.reset();
    co_return step;
  }
  step.is_done = found.is_last;
  if (found.candidates.empty()) co_return step;
  pg::Batch make(sql::queue_replays, queue_params(replay, found.candidates));
  const std::vector<pg::Rows> made = co_await transaction.run(std::move(make));
  step.queued = made.front().get<int64_t>(0, 0);
  co_return step;
}

// True: there is more to do. Sets is_over when there is not, for whatever reason.
Task<bool> ReplayRunner::State::step(Held& replay) {
  pg::Transaction transaction = co_await link.begin();
  pg::Batch hold;
  hold.with(sql::hold_replay, replay.id.uuid, options.node_id.uuid);
  const std::vector<pg::Rows> held_rows = co_await transaction.run(std::move(hold));
  if (held_rows.front().empty()) {
    co_await transaction.rollback();
    replay.is_over = true;
    co_return false;
  }
  auto searching = search(transaction, replay, held_rows.front());
  const Step step = co_await searching;
  std::optional<base::Uuid> after_id, after_endpoint;
  if (step.next) {
    after_id = step.next->id;
    after_endpoint = step.next->endpoint;
  }
  pg::Batch move;
  move.with(sql::move_replay, replay.id.uuid, options.lease_seconds, step.is_counted, step.matched,
            step.queued, after_id, after_endpoint, step.is_done);
  const std::vector<pg::Rows> moved = co_await transaction.run(std::move(move));
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
    : state_(std::make_unique<State>(loop, link, options)) {}
ReplayRunner::~ReplayRunner() = default;

void ReplayRunner::on_committed(base::UniqueFunction<void()> callback) {
  state_->on_committed = std::move(callback);
}

void ReplayRunner::start() {
  state_->group.spawn(state_->run());
}

Task<void> ReplayRunner::stop() {
  State& state = *state_;
  state.is_stopping = true;
  state.wakeup.notify();
  co_await state.group.join();
  if (state.held.empty() || !state.link.is_up()) co_return;
  try {
    pg::Params params(state.ids(), state.options.node_id.uuid);
    co_await state.link.run_one(sql::release_replays, std::move(params));
  } catch (const pg::Error& error) {
    telemetry::log_warn("replay_failed").field("error", error.what());  // the lease ends by itself
  }
}

Task<SteadyTime> ReplayRunner::run_once(SteadyTime now) {
  auto pass = state_->run_once(now);
  const SteadyTime next = co_await pass;
  co_return next;
}

}  // namespace postrider::replay
