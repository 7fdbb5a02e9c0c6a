#include "postrider/outbox/relay.hpp"

#include <algorithm>

#include "postrider/model/event_rules.hpp"
#include "postrider/outbox/relay.sql.hpp"
#include "postrider/outbox/state.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::outbox {

namespace {

using runtime::Task;
using std::chrono::milliseconds;

constexpr milliseconds kLeasePoll{500};     // how often those who wait try
constexpr milliseconds kFailurePause{500};  // after a pass that failed
constexpr milliseconds kPassingPause{20};   // after one that may succeed at once: a deadlock, a lock
constexpr milliseconds kNapMin{2};          // see State::nap()
constexpr milliseconds kFailedPoll{250};
constexpr milliseconds kShowInterval{3'000};  // of the gauges
const std::string kChannel = "postrider_outbox";

}  // namespace

struct Relay::State {
  State(runtime::Loop& loop_, pg::Link& link_, pg::Lease& lease_, Mover& mover_,
        telemetry::OutboxSeries series_, RelayOptions options_)
      : loop(loop_),
        link(link_),
        lease(lease_),
        mover(mover_),
        series(series_),
        options(std::move(options_)),
        wakeup(loop_) {}

  runtime::Loop& loop;
  pg::Link& link;
  pg::Lease& lease;
  Mover& mover;
  telemetry::OutboxSeries series;
  RelayOptions options;
  runtime::Wakeup wakeup;
  std::unique_ptr<pg::Listener> listener;
  runtime::TaskGroup tasks;
  bool is_stopping = false;

  bool is_active = false;  // holds the lease, as far as was said
  bool is_asleep = false;
  base::SteadyTime asleep_at{};  // when publish() was last told
  Window window;
  base::SteadyTime full_pass_at{};
  base::SteadyTime shown_at{};   // the state of the outbox
  base::SteadyTime failed_at{};  // when refused rows are looked at again

  std::string failed_with;  // by the last pass

  Task<void> run();
  Task<void> pass();
  Task<bool> hold_lease();
  Task<void> begin();
  Task<void> show_state();
  Task<void> fall_asleep();
  Task<bool> move_all();
  Task<void> sleep();
  Task<void> nap();
  Task<void> wake();
  Task<void> stop_listening();
  void lose_lease();
};

Task<void> Relay::State::run() {
  while (!is_stopping) {
    milliseconds pause{0};
    try {
      auto once = pass();
      co_await once;
      failed_with.clear();
    } catch (const pg::Error& error) {
      pause = error.kind() == pg::Kind::retry ? kPassingPause : kFailurePause;
      if (pg::Lease::is_loss(error)) lease.lose();
      // What stays wrong, such as a right that is missing, is said once.
      if (error.kind() != pg::Kind::unavailable && !pg::Lease::is_loss(error) && failed_with != error.what())
        telemetry::log_warn("relay_failed").field("outbox", options.name).field("error", error.what());
      failed_with = error.what();
    } catch (const std::exception& error) {
      // Another database's data must not end the process, whatever it makes a library throw.
      pause = kFailurePause;
      if (failed_with != error.what())
        telemetry::log_error("relay_failed").field("outbox", options.name).field("error", error.what());
      failed_with = error.what();
    }
    if (pause.count() > 0 && !is_stopping) co_await wakeup.wait_for(pause);
  }
}

// Everything that is there, then a sleep until there may be more; or a wait for the lease.
Task<void> Relay::State::pass() {
  auto holding = hold_lease();
  const bool is_ours = co_await holding;
  if (!is_ours) {
    auto stopped = stop_listening();
    co_await stopped;
    if (!is_stopping) co_await wakeup.wait_for(kLeasePoll);
    co_return;
  }
  auto moved = move_all();
  co_await moved;
  auto rest = sleep();
  co_await rest;
}

Task<bool> Relay::State::hold_lease() {
  if (is_active && !lease.is_held()) lose_lease();
  auto holding = lease.hold();
  const bool is_ours = co_await holding;
  if (!is_ours) {
    lose_lease();
    co_return false;
  }
  if (!is_active) {
    auto beginning = begin();
    co_await beginning;
  }
  if (base::BootClock::now() - shown_at >= kShowInterval) {
    auto showing = show_state();
    co_await showing;
  }
  co_return true;
}

Task<void> Relay::State::begin() {
  pg::Batch first;
  first.add(sql::wake_up);  // whoever held the lease before may have ended asleep
  first.with(sql::set_data_bytes_max, int32_t{options.data_bytes_max});
  co_await link.run(std::move(first));
  is_active = true;
  series.active.set(1);
  telemetry::log_info("relay_active").field("outbox", options.name);
  if (!options.may_be_notified || listener) co_return;
  pg::ListenerOptions listen;
  listen.link = options.listen;
  listen.channels = {kChannel};
  listener = std::make_unique<pg::Listener>(loop, std::move(listen));
  listener->on_notification([this](std::string_view, std::string_view) { wakeup.notify(); });
  listener->on_listening([this] { wakeup.notify(); });
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
Task<bool> Relay::State::move_all() {
  bool has_moved = false;
  while (!is_stopping) {
    const auto now = base::BootClock::now();
    if (!window.is_open()) {
      const bool is_full = now >= full_pass_at;
      if (is_full) {
        full_pass_at = now + options.full_pass;
        auto tidying = mover.tidy();
        co_await tidying;
      }
      window.begin(is_full);
    }
    auto holding = lease.hold();
    const bool is_ours = co_await holding;
    if (!is_ours || !is_active) throw pg::Error(pg::Kind::unavailable, "the lease is gone");
    auto moving = mover.move_fresh(window);
    const bool is_more = co_await moving;
    if (is_more && is_asleep) {
      auto waking = wake();
      co_await waking;
    }
    has_moved |= is_more;
    if (!is_more && !window.is_open()) break;
  }
  const auto now = base::BootClock::now();
  if (is_stopping || now < failed_at) co_return has_moved;
  failed_at = now + kFailedPoll;
  auto again = mover.move_failed();
  const bool has_retried = co_await again;
  co_return has_moved || has_retried;
}

// Once publish() has been told to notify, one more look: what was committed just before did not.
Task<void> Relay::State::sleep() {
  if (is_stopping) co_return;
  if (!listener || !listener->is_listening()) {
    co_await wakeup.wait_for(options.poll);
    co_return;
  }
  if (!is_asleep) {
    auto falling = fall_asleep();
    co_await falling;
    auto moving = move_all();
    const bool has_moved = co_await moving;
    if (has_moved) co_return;
  }
  if (base::BootClock::now() - asleep_at >= options.lease) {
    auto still = fall_asleep();
    co_await still;
  }
  auto napping = nap();
  co_await napping;
}

// For longer than until the next poll; a relay that dies asleep does not make everybody notify for ever.
Task<void> Relay::State::fall_asleep() {
  const milliseconds span = 2 * options.lease + options.poll;
  pg::Batch batch;
  batch.add(sql::no_flush).with(sql::fall_asleep, int64_t{span.count()});
  lease.fence(batch);
  co_await link.run(std::move(batch));
  is_asleep = true;
  asleep_at = base::BootClock::now();
}

// A transaction that looked whether we sleep before we did, and commits after our look, sends no NOTIFY. They
// are among those that were in progress then. So the first polls come soon, and each takes twice as long as
// the one before: a late commit waits about as long as it was late.
Task<void> Relay::State::nap() {
  milliseconds pause = window.is_anything_in_progress() ? std::min(kNapMin, options.poll) : options.poll;
  while (!is_stopping && is_asleep) {
    const auto until = base::BootClock::now() + pause;
    co_await wakeup.wait_until(until);
    if (pause >= options.poll || base::BootClock::now() < until || !window.is_anything_in_progress())
      co_return;
    pause = std::min(2 * pause, options.poll);
    auto moving = move_all();
    const bool has_moved = co_await moving;
    if (has_moved) co_return;
  }
}

Task<void> Relay::State::wake() {
  is_asleep = false;
  pg::Batch batch;
  batch.add(sql::no_flush).add(sql::wake_up);
  co_await link.run(std::move(batch));
}

Task<void> Relay::State::stop_listening() {
  if (!listener) co_return;
  co_await listener->stop();
  listener.reset();
}

pg::LeaseOptions relay_lease(const RelayOptions& options) {
  return {.name = "relay", .owner = options.owner, .of = options.name, .stall = options.lease};
}

Relay::Relay(runtime::Loop& loop, pg::Link& link, pg::Lease& lease, Mover& mover,
             telemetry::OutboxSeries series, RelayOptions options)
    : state_(std::make_unique<State>(loop, link, lease, mover, series, std::move(options))) {}

Relay::~Relay() = default;

void Relay::start() {
  state_->tasks.spawn(state_->run());
}

Task<void> Relay::stop() {
  state_->is_stopping = true;
  state_->wakeup.notify();
  co_await state_->tasks.join();
  auto stopped = state_->stop_listening();
  co_await stopped;
  auto released = state_->lease.release();
  co_await released;
  state_->lose_lease();
}

Task<bool> Relay::run_once() {
  auto holding = state_->hold_lease();
  const bool is_ours = co_await holding;
  if (!is_ours) co_return false;
  auto moving = state_->move_all();
  co_await moving;
  co_return true;
}

bool Relay::is_active() const {
  return state_->is_active && state_->lease.is_held();
}

bool Relay::is_asleep() const {
  return state_->is_asleep;
}

}  // namespace postrider::outbox
