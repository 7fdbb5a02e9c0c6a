#include "postrider/outbox/relay.hpp"

#include <algorithm>

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
const std::string kChannel = "postrider_outbox";

}  // namespace

struct Relay::State {
  State(runtime::Loop& loop_, pg::Link& link_, Mover& mover_, telemetry::OutboxSeries series_,
        RelayOptions options_)
      : loop(loop_),
        link(link_),
        mover(mover_),
        series(series_),
        options(std::move(options_)),
        wakeup(loop_) {}

  runtime::Loop& loop;
  pg::Link& link;
  Mover& mover;
  telemetry::OutboxSeries series;
  RelayOptions options;
  runtime::Wakeup wakeup;
  std::unique_ptr<pg::Listener> listener;
  runtime::TaskGroup tasks;
  bool is_stopping = false;

  // Of the session that holds the lease: 0 when it is not held.
  uint64_t lease_connection = 0;
  bool is_asleep = false;
  Window window;
  base::SteadyTime full_pass_at{};
  base::SteadyTime beat_at{};
  base::SteadyTime failed_at{};  // when refused rows are looked at again

  // The holder's beat as seen while waiting.
  int64_t seen_beat = -1;
  base::SteadyTime seen_at{};

  std::string failed_with;  // by the last pass

  Task<void> run();
  Task<void> pass();
  Task<bool> hold_lease();
  Task<void> end_stalled_holder(base::SteadyTime now);
  Task<void> beat(base::SteadyTime now);
  Task<bool> move_all();
  Task<void> sleep();
  Task<void> nap();
  Task<void> wake();
  Task<void> stop_listening();
  void lose_lease();
  bool is_holding() const {
    return lease_connection != 0 && link.is_up() && link.connection_number() == lease_connection;
  }
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
      // What stays wrong, such as a right that is missing, is said once.
      if (error.kind() != pg::Kind::unavailable && failed_with != error.what())
        telemetry::log_warn("relay_failed").field("outbox", options.name).field("error", error.what());
      failed_with = error.what();
    }
    if (pause.count() > 0 && !is_stopping) co_await wakeup.wait_for(pause);
  }
}

// Everything that is there, then a sleep until there may be more; or a wait for the lease.
Task<void> Relay::State::pass() {
  auto lease = hold_lease();
  const bool is_ours = co_await lease;
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
  const auto now = base::BootClock::now();
  if (is_holding()) {
    if (now - beat_at >= options.lease / 3) {
      auto beating = beat(now);
      co_await beating;
    }
    co_return true;
  }
  lose_lease();
  const auto taken = co_await link.run_one(sql::take_lease);
  if (!taken.get<bool>(0, 0)) {
    auto judged = end_stalled_holder(now);
    co_await judged;
    co_return false;
  }
  lease_connection = link.connection_number();
  seen_beat = -1;
  series.active.set(1);
  telemetry::log_info("relay_active").field("outbox", options.name);
  auto beating = beat(now);
  co_await beating;
  pg::Params limit(int32_t{options.data_bytes_max});
  co_await link.run_one(sql::set_data_bytes_max, std::move(limit));
  if (!options.may_be_notified || listener) co_return true;
  pg::ListenerOptions listen;
  listen.link = options.listen;
  listen.channels = {kChannel};
  listener = std::make_unique<pg::Listener>(loop, std::move(listen));
  listener->on_notification([this](std::string_view, std::string_view) { wakeup.notify(); });
  listener->on_listening([this] { wakeup.notify(); });
  listener->start();
  co_return true;
}

// Its session lives, but it does not: stopped, or cut off from us and not from the database.
Task<void> Relay::State::end_stalled_holder(base::SteadyTime now) {
  const auto rows = co_await link.run_one(sql::read_beat);
  const int64_t beat = rows.get<int64_t>(0, 0);
  if (beat != seen_beat) {
    seen_beat = beat;
    seen_at = now;
  }
  if (now - seen_at < options.lease) co_return;
  telemetry::log_warn("relay_stalled").field("outbox", options.name).field("note", "its session is ended");
  seen_at = now;
  co_await link.run_one(sql::end_holder);
}

Task<void> Relay::State::beat(base::SteadyTime now) {
  pg::Params who(options.owner);
  co_await link.run_one(sql::beat, std::move(who));
  beat_at = now;
  pg::Batch ask = state_batch();
  const auto answers = co_await link.run(std::move(ask));
  const OutboxState outbox_state = read_state(answers);
  series.stuck.set(static_cast<double>(outbox_state.stuck));
  const auto age =
      outbox_state.oldest_at ? base::wall_now() - *outbox_state.oldest_at : base::Microseconds(0);
  series.oldest_seconds.set(std::max(0.0, std::chrono::duration<double>(age).count()));
}

void Relay::State::lose_lease() {
  if (lease_connection != 0) telemetry::log_info("relay_inactive").field("outbox", options.name);
  lease_connection = 0;
  is_asleep = false;  // its locks went with the session
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
    if (now - beat_at >= options.lease / 3) {
      auto beating = beat(now);
      co_await beating;
    }
    if (!is_holding()) throw pg::Error(pg::Kind::unavailable, "the lease is gone");
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
    const auto asleep = co_await link.run_one(sql::fall_asleep);
    is_asleep = asleep.get<bool>(0, 0);
    if (!is_asleep) {  // somebody is just looking whether we are
      co_await wakeup.wait_for(kNapMin);
      co_return;
    }
    auto moving = move_all();
    const bool has_moved = co_await moving;
    if (has_moved) co_return;
  }
  auto napping = nap();
  co_await napping;
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
  co_await link.run_one(sql::wake_up);
}

Task<void> Relay::State::stop_listening() {
  if (!listener) co_return;
  co_await listener->stop();
  listener.reset();
}

Relay::Relay(runtime::Loop& loop, pg::Link& link, Mover& mover, telemetry::OutboxSeries series,
             RelayOptions options)
    : state_(std::make_unique<State>(loop, link, mover, series, std::move(options))) {}

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
  if (!state_->is_holding()) co_return;
  try {
    co_await state_->link.run_one(sql::release_lease);
  } catch (const pg::Error& error) {
    telemetry::log_debug("relay_lease_not_released").field("error", error.what());
  }
  state_->lose_lease();
}

Task<bool> Relay::run_once() {
  auto lease = state_->hold_lease();
  const bool is_ours = co_await lease;
  if (!is_ours) co_return false;
  auto moving = state_->move_all();
  co_await moving;
  co_return true;
}

bool Relay::is_active() const {
  return state_->is_holding();
}

bool Relay::is_asleep() const {
  return state_->is_asleep;
}

}  // namespace postrider::outbox
