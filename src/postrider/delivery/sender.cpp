#include "postrider/delivery/sender.hpp"

#include <algorithm>
#include <random>
#include <utility>

#include "postrider/base/fail_point.hpp"
#include "postrider/delivery/report/log_lines.hpp"
#include "postrider/registry/endpoint_config.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::delivery {

namespace {

using namespace std::chrono_literals;

// After this much, other work of the loop runs. Large bodies take long to sign and to write.
constexpr int kSendsPerTurn = 128;
constexpr size_t kBytesPerTurn = 256 << 10;
constexpr auto kBodyKeptFor = 1s;        // a retry that is due later gives its body back
constexpr auto kNotAttemptedPause = 1s;  // this node could not even try
constexpr auto kServiceGap = 5s;         // shorter ones are late timers
constexpr size_t kServiceGapsMax = 100;  // the oldest are forgotten: only deadlines in them matter
constexpr auto kLatePause = 1s;          // the bucket may have another owner; this node will notice soon

double jitter() {
  static thread_local std::mt19937_64 generator{std::random_device{}()};
  return std::uniform_real_distribution<double>(0, 1)(generator);
}

}  // namespace

Sender::Sender(SenderTools tools, Options options, LaneEvents& events)
    : tools_(tools),
      options_(options),
      events_(events),
      stalls_(tools.loop),
      tenant_timer_(tools.loop),
      idle_(tools.loop) {}

// ── choose ──

void Sender::add(const LanePtr& lane, Turn turn) {
  tools_.chooser.add(lane, turn);
  send_soon();
}

void Sender::send_soon() {
  if (std::exchange(is_send_posted_, true)) return;
  tools_.loop.post([this] {
    is_send_posted_ = false;
    send_ready_lanes();
  });
}

// The lease must be valid, of the term under which the buckets are held, and confirmed since the process last
// stalled.
bool Sender::may_send(base::SteadyTime at) {
  stalls_.look(at);
  const cluster::LeaseClock& lease = tools_.lease;
  return lease.is_valid(at) && lease.term() == term_ && lease.is_confirmed_since(stalls_.woken_at());
}

void Sender::send_ready_lanes() {
  std::vector<LanePtr> not_ready;
  int sends = 0;
  size_t bytes = 0;
  bool has_asked_all = false;
  const auto is_turn_over = [&] { return sends == kSendsPerTurn || bytes >= kBytesPerTurn; };
  while (!is_stopping_ && !is_turn_over() && tools_.settler.waiting() < options_.unsettled_max) {
    // First, because a node that has not registered yet has no lease and does not know the database's time.
    if (!may_send(base::BootClock::now())) break;
    const Now at = now();
    auto choice = tools_.chooser.next(at, not_ready);
    has_asked_all = !choice;
    if (!choice) break;
    ++sends;
    bytes += choice->row.body_bytes();
    const LanePtr lane = choice->lane;
    tasks_.spawn(deliver(std::move(*choice), at.steady));
    if (tools_.budget.is_low(lane->rows())) events_.changed(lane);
  }
  for (const LanePtr& lane : not_ready) events_.changed(lane);
  if (is_turn_over()) send_soon();
  // If not all were asked, that time may be long past, because nothing may be sent now. Whatever ends that
  // calls send_soon().
  if (const auto next = tools_.chooser.next_tenant_at(); next && has_asked_all)
    tenant_timer_.call_at(*next, [this] { send_soon(); });
}

// ── one attempt ──

// An attempt without a conclusive result leaves the row as it was, in memory and in the table.
runtime::Task<void> Sender::deliver(Chooser::Choice choice, base::SteadyTime begun_at) {
  base::reach("deliver.chosen");
  const LanePtr lane = choice.lane;
  const auto config = lane->config();  // a change during the exchange does not apply to it
  const size_t bytes = choice.row.body_bytes();
  tools_.metrics.in_flight.add(1);

  if (is_expired(choice)) {
    if (choice.is_probe) lane->breaker().abandon_probe();
    free_slot(choice, bytes);
    log_expired(*lane, choice.row);
    Ending ending = expired(tools_.clock.now());
    co_await settle(lane, std::move(choice.row), std::move(ending));
    co_return;
  }

  // Attempt.
  const uint64_t stalls = stalls_.stalls();
  const AttemptTools tools{tools_.client, tools_.clock, options_.response_bytes_max, options_.user_agent};
  ExchangeInFlight exchange({choice.row.id(), lane->bucket}, begun_at);
  exchanges_.add(exchange);
  AttemptResult result = co_await attempt(tools, *config, choice.row);
  exchange.unlink();
  free_slot(choice, bytes);
  if (!is_conclusive(result, *lane, stalls)) {
    if (choice.is_probe) lane->breaker().abandon_probe();
    put_back(choice);
    co_return;
  }

  // Decide.
  const Now at = now();
  const Verdict verdict = decide(*result.outcome, context_of(choice, at), lane->config()->retry);

  // Record.
  record(choice, verdict, result, at);
  if (std::holds_alternative<NotAttempted>(*result.outcome)) {
    put_back(choice);
    co_return;
  }
  events_.changed(lane);
  send_soon();

  // Settle.
  Settlement settlement{lane,       std::move(choice.row), verdict, std::move(result.facts), choice.is_probe,
                        choice.turn};
  const Written written = co_await tools_.settler.settle(settlement);
  settled(settlement, written);
}

bool Sender::is_expired(const Chooser::Choice& choice) const {
  return expiry_of(*choice.lane).is_expired(choice.row.created_at);
}

// Nothing is known if this node canceled the exchange, or lost the bucket, or if the exchange timed out while
// the whole process was stalled.
bool Sender::is_conclusive(const AttemptResult& result, const Lane& lane, uint64_t stalls) {
  const bool is_responded_to = result.outcome && std::holds_alternative<Responded>(*result.outcome);
  const bool has_proof = is_responded_to || !stalls_.has_stalled_since(stalls);
  if (lane.is_gone()) tools_.metrics.late_settles_dropped.add();
  return result.outcome && has_proof && !lane.is_gone();
}

AttemptContext Sender::context_of(const Chooser::Choice& choice, const Now& at) const {
  return {.number = choice.row.attempts + 1,
          .created_at = choice.row.created_at,
          .paused_for = registry::paused_between(pauses_of(*choice.lane), choice.row.created_at, at.db),
          .now = at.db,
          .jitter = jitter(),
          .rejected_in_row = EndpointState::rejected_in_row(*choice.lane),
          .is_probe = choice.is_probe};
}

void Sender::record(const Chooser::Choice& choice, const Verdict& verdict, const AttemptResult& result,
                    const Now& at) {
  Lane& lane = *choice.lane;
  log_attempt({.lane = lane,
               .row = choice.row,
               .verdict = verdict,
               .facts = result.facts,
               .is_probe = choice.is_probe});
  if (result.blocked_reason)
    tools_.metrics.blocked_destinations.at(http::to_string(*result.blocked_reason)).add();
  if (std::holds_alternative<NotAttempted>(*result.outcome)) {
    if (choice.is_probe) lane.breaker().abandon_probe();
    lane.hold_until(at.steady + kNotAttemptedPause);
    return;
  }
  const EndpointState::Observation seen{
      .verdict = verdict, .facts = result.facts, .is_probe = choice.is_probe, .jitter = jitter()};
  tools_.endpoints.record(lane, seen, at);
}

void Sender::free_slot(const Chooser::Choice& choice, size_t bytes) {
  choice.lane->finished_exchange();
  tools_.chooser.finished({*choice.lane->tenant(), choice.turn, bytes});
  tools_.metrics.in_flight.add(-1);
  if (tools_.chooser.in_flight() == 0) idle_.notify();
}

void Sender::put_back(Chooser::Choice& choice) {
  release(*choice.lane, choice.row);
  if (!choice.lane->is_gone()) choice.lane->buffer(choice.turn).put_back(std::move(choice.row));
  events_.changed(choice.lane);
  send_soon();
}

void Sender::release(Lane& lane, const QueueRow& row) {
  lane.release(row.id());
  if (!lane.has_outstanding()) events_.became_idle(lane);
}

// ── settle ──

void Sender::dead_letter(const LanePtr& lane, QueueRow row, Ending ending) {
  lane->add_outstanding(row.id());
  tasks_.spawn(settle(lane, std::move(row), std::move(ending)));
}

// ── deadlines ──

registry::PauseSpans Sender::pauses_of(const Lane& lane) const {
  const registry::PauseSpans& own = lane.config()->endpoint.pause_spans;
  const registry::PauseSpans& all = tools_.chooser.brake_pauses();
  if (all.empty()) return own;
  registry::PauseSpans both = own;
  both.insert(both.end(), all.begin(), all.end());
  return registry::merged(std::move(both));
}

Expiry Sender::expiry_of(const Lane& lane) const {
  const LaneConfig& config = *lane.config();
  ExpiryClock clock{
      .give_up = config.retry.give_up, .pauses = pauses_of(lane), .unserved = config.endpoint.unserved_spans};
  clock.unserved.insert(clock.unserved.end(), unserved_.begin(), unserved_.end());
  return Expiry(clock, tools_.clock.now());
}

void Sender::expire(const LanePtr& lane, QueueRow row) {
  ++expiring_;
  log_expired(*lane, row);
  lane->add_outstanding(row.id());
  tasks_.spawn(settle_expired(lane, std::move(row)));
}

runtime::Task<void> Sender::settle_expired(LanePtr lane, QueueRow row) {
  Ending ending = expired(tools_.clock.now());
  auto settling = settle(std::move(lane), std::move(row), std::move(ending));
  co_await settling;
  --expiring_;
}

bool Sender::look_at_service() {
  if (is_stopping_ || !may_send(base::BootClock::now())) return false;
  const base::Timestamp at = tools_.clock.now();
  if (served_at_ && at - *served_at_ > kServiceGap) {
    if (unserved_.size() == kServiceGapsMax) unserved_.erase(unserved_.begin());
    unserved_.push_back({*served_at_, at});
  }
  served_at_ = at;
  return true;
}

runtime::Task<void> Sender::settle(LanePtr lane, QueueRow row, Ending ending) {
  Settlement settlement{std::move(lane),         std::move(row), ending.verdict,
                        std::move(ending.facts), false,          Turn::first};
  const Written written = co_await tools_.settler.settle(settlement);
  settled(settlement, written);
}

void Sender::settled(Settlement& settlement, Written written) {
  const LanePtr lane = settlement.lane;
  const bool is_durable = written == Written::now || written == Written::before;
  release(*lane, settlement.row);
  if (is_durable) count(settlement);
  // Only the table knows the row's state: it may still be there, changed by someone else.
  if (written == Written::before || written == Written::late) lane->expect_more();
  if (written == Written::late) lane->hold_until(base::BootClock::now() + kLatePause);
  const bool goes_on = is_durable && settlement.verdict.kind == Verdict::Kind::retrying && !lane->is_gone();
  if (goes_on && settlement.is_failed_probe()) {
    ++settlement.row.probes;
    lane->buffer(settlement.turn).put_back(std::move(settlement.row));
  } else if (goes_on)
    schedule_retry(*lane, std::move(settlement.row), settlement.verdict.retry_at);
  events_.changed(lane);
  send_soon();
}

void Sender::schedule_retry(Lane& lane, QueueRow row, base::Timestamp due_at) {
  ++row.attempts;
  row.key.due_at = due_at;
  if (due_at - tools_.clock.now() > kBodyKeptFor) row.event.reset();
  if (lane.is_strict()) {
    lane.buffer(Turn::first).put_back(std::move(row));
    return;
  }
  row.key.position = 0;
  RowBuffer& retries = lane.buffer(Turn::retry);
  retries.offer(std::move(row), tools_.budget.has_room(retries));
}

void Sender::count(const Settlement& settlement) {
  rollups_.add(settlement);
  count_settlement(tools_.metrics, settlement, tools_.clock.now());
}

// ── ending ──

runtime::Task<void> Sender::drain(base::SteadyTime deadline) {
  while (tools_.chooser.in_flight() > 0 && base::BootClock::now() < deadline)
    co_await idle_.wait_until(deadline);
  // The attempt that ended last has freed its slot and is still to be settled.
  runtime::Yield turn{tools_.loop};
  co_await turn;
}

runtime::Task<void> Sender::stop() {
  is_stopping_ = true;
  co_await tasks_.join();
  stalls_.stop();
  tenant_timer_.cancel();
  runtime::Yield turn{tools_.loop};
  while (is_send_posted_) co_await turn;
}

}  // namespace postrider::delivery
