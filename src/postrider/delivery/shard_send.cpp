// The sending half of a shard: which lane is ready, what is chosen, and what becomes of an attempt.
#include <algorithm>
#include <random>
#include <utility>

#include "postrider/base/check.hpp"
#include "postrider/base/fail_point.hpp"
#include "postrider/delivery/log_lines.hpp"
#include "postrider/delivery/shard.hpp"
#include "postrider/registry/endpoint_config.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::delivery {

namespace {

using namespace std::chrono_literals;

constexpr int kSendsPerTurn = 128;       // then other work of the loop gets its turn
constexpr auto kRestsBeyond = 1s;        // a lane that cannot send within this gives its bodies back
constexpr auto kNotAttemptedPause = 1s;  // this node could not even try
constexpr auto kLatePause = 1s;          // the table knew better
constexpr auto kStatusPause = 1s;        // until a status that was just written down comes back to the lane

double jitter() {
  static thread_local std::mt19937_64 generator{std::random_device{}()};
  return std::uniform_real_distribution<double>(0, 1)(generator);
}

}  // namespace

// Sees to whatever the lane needs next. Called after anything about it changed; cheap when nothing is to be
// done.
void Shard::touch(const LanePtr& lane) {
  if (lane->is_gone || is_stopping_) return;
  const Now at = now();
  if (!lane->config || (lane->config->reload_at && *lane->config->reload_at <= at.db) ||
      (lane->config->look_up_at && *lane->config->look_up_at <= at.steady))
    loader_.want_config(lane);
  if (!lane->config) return;
  switch (lane->config->mode) {
    case LaneConfig::Mode::send:
      for (const Turn turn : {Turn::first, Turn::retry}) touch_turn(lane, turn, at);
      break;
    case LaneConfig::Mode::hold:
      // One that is over was asked for above, and the lane is touched again when it is there.
      if (lane->config->look_up_at && *lane->config->look_up_at > at.steady)
        wake_lane_at(lane, *lane->config->look_up_at);
      lane->buffer(Turn::first).shrink(0);
      lane->buffer(Turn::retry).shrink(0);
      break;
    case LaneConfig::Mode::disable:
    case LaneConfig::Mode::cancel:
    case LaneConfig::Mode::clear:
      if (lane->has_work() && !std::exchange(lane->is_sweeping, true)) tasks_.spawn(sweep(lane));
      break;
  }
  lane->idle_since = lane->has_work() ? base::SteadyTime{} : at.steady;
}

void Shard::touch_turn(const LanePtr& lane, Turn turn, const Now& at) {
  RowBuffer& buffer = lane->buffer(turn);
  const auto readiness = lane->readiness(turn, at);
  const bool is_resting = readiness.wait == Lane::Wait::time && readiness.until - at.steady > kRestsBeyond;
  if (is_resting) rest(buffer);
  if (needs_rows(buffer, is_resting)) loader_.want_rows(lane);
  switch (readiness.wait) {
    case Lane::Wait::ready:
      chooser_.add(lane, turn);
      pump_soon();
      break;
    case Lane::Wait::body:
      loader_.want_bodies(lane);
      break;
    case Lane::Wait::time:
      wake_lane_at(lane, readiness.until);
      break;
    case Lane::Wait::event:
    case Lane::Wait::nothing:
      break;
  }
}

void Shard::wake_lane_at(const LanePtr& lane, base::SteadyTime when) {
  if (lane->wake_at <= when) return;
  cancel_wake(*lane);
  lane->wake_at = when;
  const auto placed = wakes_.emplace(when, lane.get()).first;
  if (placed == wakes_.begin()) set_timer();
}

void Shard::cancel_wake(Lane& lane) {
  wakes_.erase({lane.wake_at, &lane});
  lane.wake_at = base::SteadyTime::max();
}

void Shard::set_timer() {
  if (!wakes_.empty()) timer_.call_at(wakes_.begin()->first, [this] { run_timers(); });
}

void Shard::run_timers() {
  const auto at = base::BootClock::now();
  while (!wakes_.empty() && wakes_.begin()->first <= at) {
    const LanePtr lane = lanes_.at(wakes_.begin()->second->endpoint);
    cancel_wake(*lane);
    touch(lane);
  }
  set_timer();
}

void Shard::lease_renewed() {
  pump_soon();
}

void Shard::pump_soon() {
  if (std::exchange(is_pump_posted_, true)) return;
  tools_.loop.post([this] {
    is_pump_posted_ = false;
    pump();
  });
}

void Shard::pump() {
  std::vector<LanePtr> not_ready;
  int sends = 0;
  bool has_asked_all = false;
  while (!is_stopping_ && sends < kSendsPerTurn && settler_.waiting() < options_.unsettled_max) {
    // Asked first: a node that has not registered yet has no lease, and does not know the database's time.
    if (!may_send(base::BootClock::now())) break;
    const Now at = now();
    auto choice = chooser_.next(at, not_ready);
    has_asked_all = !choice;
    if (!choice) break;
    ++sends;
    const LanePtr lane = choice->lane;
    tasks_.spawn(deliver(std::move(*choice), at.steady));
    if (lane->rows() <= options_.lane_rows_max / kRowsLow) touch(lane);
  }
  for (const LanePtr& lane : not_ready) touch(lane);
  if (sends == kSendsPerTurn) pump_soon();
  // Otherwise it may be long past, because nothing may be sent now; whatever ends that pumps.
  if (const auto next = chooser_.next_tenant_at(); next && has_asked_all)
    tenant_timer_.call_at(*next, [this] { pump_soon(); });
}

runtime::Task<void> Shard::deliver(Chooser::Choice choice, base::SteadyTime begun_at) {
  base::reach("deliver.chosen");
  tools_.metrics.in_flight.add(1);
  if (is_expired(*choice.lane, choice.row, tools_.clock.now())) {
    expire(choice);
    co_return;
  }
  const uint64_t stalls = stalls_;
  const auto config = choice.lane->config;  // a change during the exchange does not change this one
  const size_t bytes = choice.row.body_bytes();
  const AttemptTools tools{tools_.client, tools_.clock, options_.answer_bytes_max};
  Flight flight({choice.row.id(), choice.lane->bucket}, begun_at);
  flights_.begin(flight);
  AttemptResult result = co_await attempt(tools, *config, choice.row);
  flight.unlink();
  finished(choice, bytes);
  const bool answered = result.outcome && std::holds_alternative<Answered>(*result.outcome);
  // A time-out across a time in which the whole process stood still proves nothing.
  const bool has_proof = answered || !has_stalled_since(stalls);
  if (choice.lane->is_gone) tools_.metrics.late_settles_dropped.add();
  if (!result.outcome || !has_proof || choice.lane->is_gone) {
    if (choice.is_probe) choice.lane->breaker.abandon_probe();
    put_back(choice, std::move(choice.row));
  } else {
    conclude(choice, std::move(result));
  }
  touch(choice.lane);
  pump_soon();
}

void Shard::finished(const Chooser::Choice& choice, size_t bytes) {
  choice.lane->finished_exchange();
  chooser_.finished({*choice.lane->tenant, choice.turn, bytes});
  tools_.metrics.in_flight.add(-1);
}

void Shard::conclude(Chooser::Choice& choice, AttemptResult result) {
  Lane& lane = *choice.lane;
  Row& row = choice.row;
  const Now at = now();
  const Attempt facts{.number = row.attempts + 1,
                      .created_at = row.created_at,
                      .paused_for = paused_for(lane, row, at.db),
                      .now = at.db,
                      .jitter = jitter(),
                      .rejected_in_row = lane.rejected_in_row,
                      .is_probe = choice.is_probe};
  const Verdict verdict = decide(*result.outcome, facts, lane.config->retry);
  const bool is_not_attempted = std::holds_alternative<NotAttempted>(*result.outcome);
  log_attempt(
      {.lane = lane, .row = row, .verdict = verdict, .facts = result.facts, .is_probe = choice.is_probe});
  if (result.blocked_reason)
    tools_.metrics.blocked_destinations.at(http::to_string(*result.blocked_reason)).add();
  if (!is_not_attempted) update_endpoint(lane, verdict, result.facts, choice.is_probe);
  if (is_not_attempted || !verdict.raises_attempts) {
    if (is_not_attempted) {
      if (choice.is_probe) lane.breaker.abandon_probe();
      lane.held_until = std::max(lane.held_until, at.steady + kNotAttemptedPause);
    }
    put_back(choice, std::move(row));
    return;
  }
  settler_.add({choice.lane, std::move(row), verdict, std::move(result.facts)});
}

void Shard::update_endpoint(Lane& lane, const Verdict& verdict, const AttemptFacts& facts, bool is_probe) {
  const Now at = now();
  switch (verdict.signal) {
    case Verdict::Signal::succeeded:
      lane.breaker.on_success(lane.config->endpoint.max_in_flight);
      lane.rejected_in_row = 0;
      break;
    case Verdict::Signal::failed:
      lane.breaker.on_transient_failure({.now = at.steady, .jitter = jitter(), .was_probe = is_probe});
      break;
    case Verdict::Signal::rejected:
      lane.breaker.on_rejection();
      ++lane.rejected_in_row;
      break;
    case Verdict::Signal::neutral:
      if (is_probe) lane.breaker.abandon_probe();
      break;
  }
  if (verdict.hold_endpoint_until)
    lane.held_until = std::max(lane.held_until, at.steady_of(*verdict.hold_endpoint_until));
  if (verdict.endpoint != Verdict::Endpoint::unchanged) {
    lane.held_until = std::max(lane.held_until, at.steady + kStatusPause);
    settler_.change_status({lane.endpoint, verdict.endpoint, facts.error_detail.value_or("")});
  }
  if (verdict.signal == Verdict::Signal::neutral) return;
  const bool is_failing = verdict.signal != Verdict::Signal::succeeded;
  std::optional<std::string> probe_error;
  if (is_probe && is_failing) probe_error = facts.error_detail ? facts.error_detail : facts.error;
  note_health(lane, is_failing, std::move(probe_error));
}

void Shard::note_health(Lane& lane, bool is_failing, std::optional<std::string> probe_error) {
  // Probes count: behind an open breaker there is nothing else.
  const int failures = is_failing ? std::min(lane.failures + 1, Settler::kFailuresCounted) : 0;
  const bool are_enough = failures == Settler::kFailuresCounted && lane.failures < failures;
  lane.failures = failures;
  if (lane.is_failing == is_failing && lane.is_breaker_open == lane.breaker.is_open() && !are_enough &&
      !probe_error)
    return;
  lane.is_failing = is_failing;
  lane.is_breaker_open = lane.breaker.is_open();
  settler_.note_health({.endpoint = lane.endpoint,
                        .is_failing = is_failing,
                        .breaker = lane.is_breaker_open ? "open" : "closed",
                        .at = tools_.clock.now(),
                        .failures = failures,
                        .probe_error = std::move(probe_error)});
}

// It was given up while it waited: it ends without another exchange.
void Shard::expire(Chooser::Choice& choice) {
  Lane& lane = *choice.lane;
  if (choice.is_probe) lane.breaker.abandon_probe();
  finished(choice, choice.row.body_bytes());
  telemetry::log_info("delivery_expired")
      .field("delivery_id", choice.row.id().outside())
      .field("tenant_id", lane.config->endpoint.tenant_id)
      .field("endpoint_id", lane.config->endpoint.outside_id)
      .field("attempts", choice.row.attempts);
  Verdict verdict;
  verdict.kind = Verdict::Kind::dead_letter;
  verdict.cause = Cause::expired;
  verdict.signal = Verdict::Signal::neutral;
  AttemptFacts facts;
  facts.is_exchange = false;
  facts.started_at = tools_.clock.now();
  facts.error_detail = "given up: it was not delivered in time";
  settler_.add({choice.lane, std::move(choice.row), verdict, std::move(facts)});
}

// Retention drops a partition only when no queue row needs it, so this was somebody's hand. Nothing can be
// sent.
void Shard::give_up_bodiless(const LanePtr& lane, Row row) {
  telemetry::log_error("event_body_missing")
      .field("delivery_id", row.id().outside())
      .field("endpoint_id", lane->endpoint.outside());
  Verdict verdict;
  verdict.kind = Verdict::Kind::dead_letter;
  verdict.cause = Cause::expired;
  verdict.signal = Verdict::Signal::neutral;
  AttemptFacts facts;
  facts.is_exchange = false;
  facts.started_at = tools_.clock.now();
  facts.error = "body_missing";
  facts.error_detail = "the event is not in the database any more";
  lane->away.push_back(row.id());
  settler_.add({lane, std::move(row), verdict, std::move(facts)});
}

bool Shard::is_expired(const Lane& lane, const Row& row, base::Timestamp at) const {
  const Age age{
      .created_at = row.created_at, .paused_for = paused_for(lane, row, at), .attempts = row.attempts};
  return delivery::is_expired(age, lane.config->retry, at);
}

std::chrono::microseconds Shard::paused_for(const Lane& lane, const Row& row, base::Timestamp at) const {
  return registry::paused_between(lane.config->endpoint.pause_spans, row.created_at, at);
}

// The row goes back to its buffer as it was; nothing was written, so the table still says the same.
void Shard::put_back(const Chooser::Choice& choice, Row row) {
  choice.lane->settled(row.id());
  if (!choice.lane->is_gone) choice.lane->buffer(choice.turn).put_back(std::move(row));
}

void Shard::settled(Settlement& settlement, Written written) {
  const LanePtr lane = settlement.lane;
  const bool is_ours = written == Written::now || written == Written::before;
  lane->settled(settlement.row.id());
  if (is_ours) count(settlement);
  if (written == Written::before || written == Written::late) {
    // What became of the row is known only to the table: it may be there still, changed by somebody else.
    lane->buffer(Turn::first).expect_more();
    lane->buffer(Turn::retry).expect_more();
  }
  // Not at once: if the bucket is somebody else's, this node is about to hear of it.
  if (written == Written::late) lane->held_until = std::max(lane->held_until, now().steady + kLatePause);
  if (is_ours && settlement.verdict.kind == Verdict::Kind::retry && !lane->is_gone) {
    Row row = std::move(settlement.row);
    ++row.attempts;
    row.key.due_at = settlement.verdict.retry_at;
    if (!lane->is_strict()) row.key.position = 0;
    if (row.key.due_at - tools_.clock.now() > kRestsBeyond) row.event.reset();
    if (lane->is_strict())
      lane->buffer(Turn::first).put_back(std::move(row));
    else
      lane->buffer(Turn::retry).offer(std::move(row), has_room(lane->buffer(Turn::retry)));
  }
  touch(lane);
  pump_soon();
}

void Shard::count(const Settlement& settlement) {
  const auto& metrics = tools_.metrics;
  tallies_.add(settlement);
  const auto lag = std::chrono::duration<double>(tools_.clock.now() - settlement.row.created_at).count();
  switch (settlement.verdict.kind) {
    case Verdict::Kind::delivered:
      metrics.deliveries_succeeded.add();
      metrics.delivery_lag_seconds.observe(lag);
      metrics.delivery_attempt_count.observe(settlement.row.attempts + 1);
      break;
    case Verdict::Kind::retry:
      break;
    case Verdict::Kind::dead_letter:
      metrics.dead_lettered.at(label(settlement.verdict.cause)).add();
      metrics.delivery_attempt_count.observe(settlement.row.attempts +
                                             (settlement.facts.is_exchange ? 1 : 0));
      break;
  }
  if (!settlement.facts.is_exchange) return;
  metrics.delivery_duration_seconds.observe(settlement.facts.total_us / 1e6);
  count_attempt(metrics, settlement);
}

}  // namespace postrider::delivery
