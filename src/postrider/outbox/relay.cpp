#include "postrider/outbox/relay.hpp"

#include <algorithm>

#include "postrider/base/backoff.hpp"
#include "postrider/base/check.hpp"
#include "postrider/model/event_rules.hpp"
#include "postrider/outbox/relay.sql.hpp"
#include "postrider/outbox/state.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::outbox {

namespace {

using runtime::Task;
using std::chrono::milliseconds;

constexpr milliseconds kLeasePoll{500};     // how often waiting relays try
constexpr milliseconds kFailurePause{500};  // after a pass that failed
constexpr milliseconds kPassingPause{20};   // after one that may succeed at once: a deadlock, a lock
constexpr milliseconds kNapMin{2};          // see State::nap()
constexpr milliseconds kFailedPoll{250};
constexpr milliseconds kShowInterval{3'000};  // of the gauges
const std::string kChannel = "postrider_outbox";

}  // namespace

struct Relay::State {
  State(Relay& relay, pg::Link& database, pg::SessionLease& relay_lease, OutboxDrainer& outbox_drainer,
        OutboxMetrics outbox_series, RelayOptions relay_options)
      : service(relay),
        link(database),
        lease(relay_lease),
        drainer(outbox_drainer),
        series(outbox_series),
        options(runtime::validated(std::move(relay_options))) {}

  Relay& service;
  pg::Link& link;
  pg::SessionLease& lease;
  OutboxDrainer& drainer;
  OutboxMetrics series;
  RelayOptions options;
  std::unique_ptr<pg::Listener> listener;

  bool is_active = false;  // holds the lease, as far as was said
  bool is_asleep = false;
  base::SteadyTime asleep_at{};  // when publish() was last informed
  Window window;
  base::SteadyTime full_pass_at{};
  base::SteadyTime shown_at{};   // the state of the outbox
  base::SteadyTime failed_at{};  // when rejected rows are retried

  std::string failed_with;  // by the last pass

  Task<milliseconds> pass();  // returns the pause after it
  Task<void> work();
  Task<bool> hold_lease();
  Task<void> begin();
  Task<void> show_state();
  Task<void> fall_asleep();
  Task<bool> drain_all();
  Task<void> sleep();
  base::SteadyTime next_poll() const;
  Task<void> nap();
  Task<void> wake();
  Task<void> stop_listening();
  void lose_lease();
};

Task<milliseconds> Relay::State::pass() {
  try {
    co_await work();
    failed_with.clear();
  } catch (const pg::Error& error) {
    if (pg::SessionLease::is_loss(error)) lease.lose();
    // A lasting error, such as a missing right, is logged once.
    if (error.kind() != pg::Kind::unavailable && !pg::SessionLease::is_loss(error) &&
        failed_with != error.what())
      telemetry::log_warn("relay_failed").field("outbox", options.name).field("error", error.what());
    failed_with = error.what();
    co_return error.kind() == pg::Kind::retry ? kPassingPause : kFailurePause;
  } catch (const std::exception& error) {
    // Another database's data must not end the process, whichever exception it causes.
    if (failed_with != error.what())
      telemetry::log_error("relay_failed").field("outbox", options.name).field("error", error.what());
    failed_with = error.what();
    co_return kFailurePause;
  }
  co_return milliseconds(0);
}

Task<void> Relay::State::work() {
  const bool is_ours = co_await hold_lease();
  if (!is_ours) {
    co_await stop_listening();
    if (!service.is_stopping()) co_await service.rest_for(kLeasePoll);
    co_return;
  }
  co_await drain_all();
  co_await sleep();
}

Task<bool> Relay::State::hold_lease() {
  if (is_active && !lease.is_held()) lose_lease();
  const bool is_ours = co_await lease.hold();
  if (!is_ours) {
    lose_lease();
    co_return false;
  }
  if (!is_active) {
    co_await begin();
  }
  if (base::BootClock::now() - shown_at >= kShowInterval) {
    co_await show_state();
  }
  co_return true;
}

Task<void> Relay::State::begin() {
  const sql::wake_up wake_up;  // the last holder of the lease may have ended asleep
  co_await link.run(wake_up, sql::set_data_bytes_max{.bytes = options.data_bytes_max});
  is_active = true;
  series.active.set(1);
  telemetry::log_info("relay_active").field("outbox", options.name);
  if (!options.may_be_notified || listener) co_return;
  pg::ListenerOptions listen;
  listen.link = options.listen;
  listen.channels = {kChannel};
  listener = std::make_unique<pg::Listener>(service.loop(), std::move(listen));
  listener->on_notification([this](std::string_view, std::string_view) { service.wake(); });
  listener->on_listening([this] { service.wake(); });
  listener->start();
}

Task<void> Relay::State::show_state() {
  shown_at = base::BootClock::now();
  pg::Batch ask = state_batch();
  const auto answers = co_await link.run(std::move(ask));
  const OutboxState outbox_state = read_state(answers);
  series.stuck.set(static_cast<double>(outbox_state.stuck));
  const auto oldest_at = outbox_state.oldest_at;
  const bool has_age = oldest_at && model::is_writable_time(*oldest_at);  // anything can be in the column
  const auto age = has_age ? base::wall_now() - *oldest_at : base::Microseconds(0);
  series.oldest_seconds.set(std::max(0.0, std::chrono::duration<double>(age).count()));
}

void Relay::State::lose_lease() {
  if (is_active) telemetry::log_info("relay_inactive").field("outbox", options.name);
  lease.lose();
  is_active = false;
  is_asleep = false;
  series.active.set(0);
  // The next session may be another server's, where transaction ids are given again.
  window = Window();
  full_pass_at = {};
}

// True when there was anything.
Task<bool> Relay::State::drain_all() {
  bool has_moved = false;
  while (!service.is_stopping()) {
    const auto now = base::BootClock::now();
    if (!window.is_open()) {
      const bool is_full = now >= full_pass_at;
      if (is_full) {
        full_pass_at = now + options.full_pass;
        co_await drainer.tidy();
      }
      window.begin(is_full);
    }
    const bool is_ours = co_await lease.hold();
    if (!is_ours || !is_active) throw pg::Error(pg::Kind::unavailable, "the lease is gone");
    const bool is_more = co_await drainer.drain_fresh(window);
    if (is_more && is_asleep) {
      co_await wake();
    }
    has_moved |= is_more;
    if (!is_more && !window.is_open()) break;
  }
  const auto now = base::BootClock::now();
  if (service.is_stopping() || now < failed_at) co_return has_moved;
  failed_at = now + kFailedPoll;
  const bool has_retried = co_await drainer.drain_failed();
  co_return has_moved || has_retried;
}

// Once publish() is set to notify, scans once more: transactions that committed just before did not notify.
Task<void> Relay::State::sleep() {
  if (service.is_stopping()) co_return;
  if (!listener || !listener->is_listening()) {
    co_await service.rest_until(next_poll());
    co_return;
  }
  if (!is_asleep) {
    co_await fall_asleep();
    const bool has_moved = co_await drain_all();
    if (has_moved) co_return;
  }
  if (base::BootClock::now() - asleep_at >= options.lease) {
    co_await fall_asleep();
  }
  co_await nap();
}

// For longer than until the next poll; after a relay dies asleep, publishers stop notifying.
Task<void> Relay::State::fall_asleep() {
  const milliseconds span = 2 * options.lease + options.poll;
  pg::Batch batch;
  batch.add(sql::no_flush{});
  batch.add(sql::fall_asleep{.milliseconds = span.count()});
  lease.fence(batch);
  co_await link.run(std::move(batch));
  is_asleep = true;
  asleep_at = base::BootClock::now();
}

base::SteadyTime Relay::State::next_poll() const {
  const auto poll_at = base::BootClock::now() + options.poll;
  return std::min(poll_at, drainer.due_at().value_or(poll_at));
}

// A transaction that looked whether we sleep before we did, and commits after our look, sends no NOTIFY. They
// are among those that were in progress then. So the first polls come soon, and each takes twice as long as
// the one before: a late commit waits about as long as it was late.
Task<void> Relay::State::nap() {
  base::Backoff naps({std::min(kNapMin, options.poll), options.poll});
  while (!service.is_stopping() && is_asleep) {
    const bool is_nap = window.is_anything_in_progress() && !naps.is_at_max();
    const auto until = is_nap ? base::BootClock::now() + naps.next() : next_poll();
    co_await service.rest_until(until);
    if (!is_nap || base::BootClock::now() < until || !window.is_anything_in_progress()) co_return;
    const bool has_moved = co_await drain_all();
    if (has_moved) co_return;
  }
}

Task<void> Relay::State::wake() {
  is_asleep = false;
  co_await link.run(sql::no_flush{}, sql::wake_up{});
}

Task<void> Relay::State::stop_listening() {
  if (!listener) co_return;
  co_await listener->stop();
  listener.reset();
}

void RelayOptions::validate() const {
  CHECK(poll.count() > 0 && lease.count() >= 0 && full_pass.count() >= 0);
}

pg::SessionLeaseOptions relay_lease(const RelayOptions& options) {
  return {.name = "relay", .owner = options.owner, .of = options.name, .stall = options.lease};
}

Relay::Relay(runtime::Loop& loop, pg::Link& link, pg::SessionLease& lease, OutboxDrainer& drainer,
             OutboxMetrics series, RelayOptions options)
    : Service(loop),
      state_(std::make_unique<State>(*this, link, lease, drainer, series, std::move(options))) {}

Relay::~Relay() = default;

Task<runtime::SteadyTime> Relay::pass(runtime::SteadyTime) {
  const milliseconds pause = co_await state_->pass();
  co_return base::BootClock::now() + pause;
}

Task<void> Relay::finish() {
  co_await state_->stop_listening();
  co_await state_->lease.release();
  state_->lose_lease();
}

Task<bool> Relay::relay_now() {
  const bool is_ours = co_await state_->hold_lease();
  if (!is_ours) co_return false;
  co_await state_->drain_all();
  co_return true;
}

bool Relay::is_active() const {
  return state_->is_active && state_->lease.is_held();
}

bool Relay::is_asleep() const {
  return state_->is_asleep;
}

}  // namespace postrider::outbox
