#include "postrider/pg/lease.hpp"

#include <utility>

#include "postrider/pg/lease.sql.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::pg {

namespace {

using runtime::Task;

constexpr std::string_view kLeaseLost = "PRL01";  // raised by hold_lease()
constexpr std::string_view kNotAllowed = "42501";

}  // namespace

SessionLease::SessionLease(Link& link, SessionLeaseOptions options)
    : link_(link), options_(std::move(options)) {}

bool SessionLease::is_held() const {
  return epoch_ != 0 && link_.is_up() && link_.connection_number() == connection_;
}

void SessionLease::lose() {
  epoch_ = 0;
}

Task<bool> SessionLease::hold() {
  const auto now = base::BootClock::now();
  if (is_held()) {
    if (now - beat_at_ < beat_interval()) co_return true;
    co_await beat(now);
    co_return is_held();
  }
  lose();
  const uint64_t connection = link_.connection_number();
  const auto taken = co_await link_.run(
      sql::take_lease{.name = options_.name, .stalled_epoch = stalled_epoch_, .owner = options_.owner});
  if (taken.empty()) {
    co_await check_holder(now);
    co_return false;
  }
  epoch_ = taken.front().epoch;
  connection_ = connection;
  beat_at_ = now;
  seen_epoch_ = seen_beat_ = stalled_epoch_ = -1;
  co_return is_held();
}

Task<void> SessionLease::beat(base::SteadyTime now) {
  const auto rows = co_await link_.run(sql::beat_lease{.name = options_.name, .epoch = epoch_});
  beat_at_ = now;
  if (rows.empty()) lose();
}

// The holder's session is alive, but its process may be stopped, or its connection lost without the server
// noticing.
Task<void> SessionLease::check_holder(base::SteadyTime now) {
  const auto rows = co_await link_.run(sql::read_holder{.name = options_.name});
  if (rows.empty()) throw Error(Kind::other, "there is no lease \"" + options_.name + "\" in the database");
  const auto holder = rows.front();
  if (holder.epoch != seen_epoch_ || holder.heartbeat != seen_beat_) {
    seen_epoch_ = holder.epoch;
    seen_beat_ = holder.heartbeat;
    seen_at_ = now;
  }
  if (now - seen_at_ < options_.stall) co_return;
  seen_at_ = now;
  stalled_epoch_ = holder.epoch;
  co_await supersede(holder.pid, std::string(holder.role));
}

Task<void> SessionLease::supersede(int pid, std::string role) {
  std::string note = "its session is ended";
  try {
    co_await link_.run(sql::end_holder{.name = options_.name});
  } catch (const Error& error) {
    if (error.sqlstate() != kNotAllowed) throw;
    note = "this role may not end its session; its writes will be rejected";
  }
  telemetry::log_warn("lease_stalled")
      .field("lease", options_.name)
      .field("of", options_.of)
      .field("pid", pid)
      .field("role", role)
      .field("note", note);
}

Task<void> SessionLease::release() {
  if (!is_held()) co_return;
  try {
    co_await link_.run(sql::release_lease{.name = options_.name, .epoch = epoch_});
  } catch (const Error& error) {
    telemetry::log_debug("lease_not_released").field("lease", options_.name).field("error", error.what());
  }
  lose();
}

void SessionLease::fence(Batch& batch) const {
  batch.add(sql::fence{.name = options_.name, .epoch = epoch_});
}

bool SessionLease::is_loss(const Error& error) {
  return error.sqlstate() == kLeaseLost;
}

Task<bool> LeaseRenewer::start() {
  const bool is_held = co_await lease_.hold();
  is_stopping_ = false;
  if (is_held) tasks_.spawn(run());
  co_return is_held;
}

Task<void> LeaseRenewer::run() {
  while (!is_stopping_ && lease_.is_held()) {
    co_await wakeup_.wait_for(lease_.beat_interval());
    if (is_stopping_ || !lease_.is_held()) co_return;
    try {
      co_await lease_.hold();
    } catch (const Error&) {
      // The holder's own statements fail, too, if it was the session.
    }
  }
}

Task<void> LeaseRenewer::stop() {
  is_stopping_ = true;
  wakeup_.notify();
  co_await tasks_.join();
  co_await lease_.release();
}

}  // namespace postrider::pg
