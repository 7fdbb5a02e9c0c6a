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

Lease::Lease(Link& link, LeaseOptions options) : link_(link), options_(std::move(options)) {}

bool Lease::is_held() const {
  return epoch_ != 0 && link_.is_up() && link_.connection_number() == connection_;
}

void Lease::lose() {
  epoch_ = 0;
}

Task<bool> Lease::hold() {
  const auto now = base::BootClock::now();
  if (is_held()) {
    if (now - beat_at_ < beat_interval()) co_return true;
    auto beating = beat(now);
    co_await beating;
    co_return is_held();
  }
  lose();
  const uint64_t connection = link_.connection_number();
  Params params(options_.name, options_.owner, stalled_epoch_);
  const Rows taken = co_await link_.run_one(sql::take_lease, std::move(params));
  if (taken.empty()) {
    auto judging = judge_holder(now);
    co_await judging;
    co_return false;
  }
  epoch_ = taken.get<int64_t>(0, 0);
  connection_ = connection;
  beat_at_ = now;
  seen_epoch_ = seen_beat_ = stalled_epoch_ = -1;
  co_return is_held();
}

Task<void> Lease::beat(base::SteadyTime now) {
  Params params(options_.name, epoch_);
  const Rows rows = co_await link_.run_one(sql::beat_lease, std::move(params));
  beat_at_ = now;
  if (rows.empty()) lose();
}

// The holder's session lives, but it may not: stopped, or cut off from the database and not noticed there.
Task<void> Lease::judge_holder(base::SteadyTime now) {
  Params name(options_.name);
  const Rows rows = co_await link_.run_one(sql::read_holder, std::move(name));
  if (rows.empty()) throw Error(Kind::other, "there is no lease \"" + options_.name + "\" in the database");
  const auto epoch = rows.get<int64_t>(0, 0), beat = rows.get<int64_t>(0, 1);
  if (epoch != seen_epoch_ || beat != seen_beat_) {
    seen_epoch_ = epoch;
    seen_beat_ = beat;
    seen_at_ = now;
  }
  if (now - seen_at_ < options_.stall) co_return;
  seen_at_ = now;
  stalled_epoch_ = epoch;
  auto ending = supersede(rows.get<int32_t>(0, 2), rows.get<std::string>(0, 3));
  co_await ending;
}

Task<void> Lease::supersede(int pid, std::string role) {
  std::string note = "its session is ended";
  try {
    Params name(options_.name);
    co_await link_.run_one(sql::end_holder, std::move(name));
  } catch (const Error& error) {
    if (error.sqlstate() != kNotAllowed) throw;
    note = "its session may not be ended by this role; what it still writes is refused";
  }
  telemetry::log_warn("lease_stalled")
      .field("lease", options_.name)
      .field("of", options_.of)
      .field("pid", pid)
      .field("role", role)
      .field("note", note);
}

Task<void> Lease::release() {
  if (!is_held()) co_return;
  try {
    Params params(options_.name, epoch_);
    co_await link_.run_one(sql::release_lease, std::move(params));
  } catch (const Error& error) {
    telemetry::log_debug("lease_not_released").field("lease", options_.name).field("error", error.what());
  }
  lose();
}

void Lease::fence(Batch& batch) const {
  batch.with(sql::fence, options_.name, epoch_);
}

bool Lease::is_loss(const Error& error) {
  return error.sqlstate() == kLeaseLost;
}

Task<bool> LeaseKeeper::start() {
  auto holding = lease_.hold();
  const bool is_held = co_await holding;
  is_stopping_ = false;
  if (is_held) tasks_.spawn(run());
  co_return is_held;
}

Task<void> LeaseKeeper::run() {
  while (!is_stopping_ && lease_.is_held()) {
    co_await wakeup_.wait_for(lease_.beat_interval());
    if (is_stopping_ || !lease_.is_held()) co_return;
    try {
      auto holding = lease_.hold();
      co_await holding;
    } catch (const Error&) {
      // The holder's own statements fail, too, if it was the session.
    }
  }
}

Task<void> LeaseKeeper::stop() {
  is_stopping_ = true;
  wakeup_.notify();
  co_await tasks_.join();
  auto releasing = lease_.release();
  co_await releasing;
}

}  // namespace postrider::pg
