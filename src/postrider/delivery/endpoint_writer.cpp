#include "postrider/delivery/endpoint_writer.hpp"

#include <algorithm>
#include <iterator>
#include <ranges>
#include <set>
#include <utility>

#include "postrider/delivery/away_clock.hpp"
#include "postrider/delivery/endpoint_writer.sql.hpp"
#include "postrider/pg/error.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::delivery {

namespace {

using namespace std::chrono_literals;

constexpr auto kRetryPause = 50ms;
constexpr auto kLockedPause = 250ms;
constexpr auto kDatabaseWait = 60s;

void log_failure(const pg::Error& error) {
  telemetry::log_warn("endpoint_change_failed").field("error", error.what());
}

}  // namespace

EndpointWriter::EndpointWriter(runtime::Loop& loop, pg::Link& link, model::NodeId node)
    : loop_(loop), link_(link), node_(node), pause_(loop), retry_(loop), idle_(loop) {}

void EndpointWriter::change_status(StatusChange change) {
  status_changes_.push_back(std::move(change));
  wake();
}

void EndpointWriter::note_health(HealthChange change) {
  std::erase_if(health_changes_,
                [&change](const HealthChange& older) { return older.endpoint == change.endpoint; });
  health_changes_.push_back(std::move(change));
  wake();
}

void EndpointWriter::note_hold(model::EndpointId endpoint, std::string reason) {
  holds_[endpoint] = std::move(reason);
  wake();
}

void EndpointWriter::wake() {
  if (is_running_ || is_stopping_) return;
  is_running_ = true;
  tasks_.spawn(run());
}

bool EndpointWriter::is_due() const {
  const bool is_any = !status_changes_.empty() || !health_changes_.empty() || !holds_.empty();
  return is_any && base::BootClock::now() >= not_before_;
}

runtime::Task<void> EndpointWriter::run() {
  runtime::Yield turn{loop_};
  co_await turn;
  while (!is_stopping_ && is_due()) {
    const bool are_noted = co_await write_notes();
    const bool are_changed = co_await write_statuses();
    const bool has_failed = !are_noted || !are_changed;
    if (has_failed && !is_stopping_) co_await pause_.wait_for(kRetryPause);
  }
  is_running_ = false;
  idle_.notify();
}

pg::Batch EndpointWriter::notes(const std::vector<HealthChange>& healths, const Holds& holds) const {
  pg::Batch out;
  if (!healths.empty()) {
    pg::Params params;
    params.add(std::views::transform(healths, [](const HealthChange& c) { return c.endpoint.uuid; }));
    params.add(std::views::transform(healths, [](const HealthChange& c) { return c.is_failing; }));
    params.add(
        std::views::transform(healths, [](const HealthChange& c) { return std::string_view(c.breaker); }));
    params.add(std::views::transform(healths, [](const HealthChange& c) { return c.at; }));
    params.add(std::views::transform(healths, [](const HealthChange& c) { return c.failures; }));
    params.add(std::views::transform(healths, [](const HealthChange& c) { return c.probe_error; }));
    params.add(std::views::transform(healths, [](const HealthChange& c) { return c.succeeded_at; }));
    out.add(sql::note_health, std::move(params));
  }
  if (!holds.empty())
    out.with(sql::note_holds, std::views::keys(holds) | std::views::transform(&model::EndpointId::uuid),
             std::views::values(holds), node_.uuid);
  return out;
}

runtime::Task<bool> EndpointWriter::write_notes() {
  const auto healths = std::exchange(health_changes_, {});
  Holds holds = std::exchange(holds_, {});
  if (healths.empty() && holds.empty()) co_return true;
  pg::Batch out = notes(healths, holds);
  try {
    const auto deadline = base::BootClock::now() + kDatabaseWait;
    const auto locked = co_await link_.run(std::move(out), deadline);
    keep_locked(healths, std::move(holds), locked);
  } catch (const pg::Error& error) {
    log_failure(error);
    // Notes are made only when something changes, so they must not be dropped for a passing failure.
    const bool is_passing = !error.is_permanent();
    for (const HealthChange& change : healths)
      if (is_passing) note_health_unless_newer(change);
    if (is_passing) holds_.merge(holds);  // newer ones stay
    co_return false;
  }
  co_return true;
}

void EndpointWriter::keep_locked(const std::vector<HealthChange>& healths, Holds holds,
                                 const std::vector<pg::Rows>& locked) {
  std::set<base::Uuid> ids;
  for (const pg::Rows& rows : locked)
    for (size_t i = 0; i < rows.size(); ++i) ids.insert(rows.get<base::Uuid>(i, 0));
  if (ids.empty()) return;
  for (const HealthChange& change : healths)
    if (ids.contains(change.endpoint.uuid)) note_health_unless_newer(change);
  std::erase_if(holds, [&ids](const auto& hold) { return !ids.contains(hold.first.uuid); });
  holds_.merge(holds);
  retry_locked_later();
}

void EndpointWriter::note_health_unless_newer(const HealthChange& change) {
  const auto is_same = [&](const HealthChange& other) { return other.endpoint == change.endpoint; };
  if (std::none_of(health_changes_.begin(), health_changes_.end(), is_same))
    health_changes_.push_back(change);
}

// Each status in a transaction of its own: it holds the registry's version until it commits, and a change of
// another endpoint takes that version while it has its endpoint locked.
runtime::Task<bool> EndpointWriter::write_statuses() {
  auto statuses = std::exchange(status_changes_, {});
  locked_statuses_.clear();
  bool is_done = true;
  auto next = statuses.begin();
  for (; is_done && next != statuses.end(); ++next) is_done = co_await write_status(*next);
  if (!is_done)
    status_changes_.insert(status_changes_.begin(), std::make_move_iterator(std::prev(next)),
                           std::make_move_iterator(statuses.end()));
  std::move(locked_statuses_.begin(), locked_statuses_.end(), std::back_inserter(status_changes_));
  co_return is_done;
}

// True also for a change that Postgres refuses: the next response of that kind brings it up again.
runtime::Task<bool> EndpointWriter::write_status(const StatusChange& change) {
  pg::Batch out;
  const bool is_disable = change.what == Verdict::Endpoint::disable;
  out.with(is_disable ? sql::disable_endpoint : sql::pause_endpoint, change.endpoint.uuid, change.reason);
  out.with(sql::endpoint_status, change.endpoint.uuid);
  try {
    const auto deadline = base::BootClock::now() + kDatabaseWait;
    const auto results = co_await link_.run(std::move(out), deadline);
    const pg::Rows& now = results.back();
    const auto status = now.empty() ? std::string_view() : now.get<std::string_view>(0, 0);
    if (status == "active" || (is_disable && status == "paused")) {
      locked_statuses_.push_back(change);
      retry_locked_later();
    }
  } catch (const pg::Error& error) {
    log_failure(error);
    co_return error.is_permanent();
  }
  co_return true;
}

void EndpointWriter::retry_locked_later() {
  not_before_ = base::BootClock::now() + kLockedPause;
  if (!std::exchange(is_retry_waiting_, true)) tasks_.spawn(retry_locked());
}

runtime::Task<void> EndpointWriter::retry_locked() {
  while (!is_stopping_ && base::BootClock::now() < not_before_) co_await retry_.wait_until(not_before_);
  is_retry_waiting_ = false;
  wake();
}

runtime::Task<void> EndpointWriter::drain(base::SteadyTime deadline) {
  AwayClock away(link_);
  while (is_running_ && base::BootClock::now() < deadline && !away.is_too_long()) {
    const auto next_look = AwayClock::next_look(deadline);
    co_await idle_.wait_until(next_look);
  }
}

runtime::Task<void> EndpointWriter::stop() {
  is_stopping_ = true;
  pause_.notify();
  retry_.notify();
  co_await tasks_.join();
}

}  // namespace postrider::delivery
