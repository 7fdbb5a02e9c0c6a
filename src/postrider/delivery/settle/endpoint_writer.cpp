#include "postrider/delivery/settle/endpoint_writer.hpp"

#include <algorithm>
#include <iterator>
#include <ranges>
#include <utility>

#include "postrider/delivery/settle/endpoint_writer.sql.hpp"
#include "postrider/delivery/settle/outage_clock.hpp"
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

template <pg::Query S>
void collect(pg::Results& results, const std::optional<pg::Pending<S>>& pending,
             std::set<base::Uuid>& locked) {
  if (!pending) return;
  for (const auto& row : results.take(*pending)) locked.insert(row.id);
}

}  // namespace

struct EndpointWriter::Notes {
  pg::Batch batch;
  std::optional<pg::Pending<sql::note_health>> healths;
  std::optional<pg::Pending<sql::note_holds>> holds;
};

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

EndpointWriter::Notes EndpointWriter::notes(const std::vector<HealthChange>& healths,
                                            const Holds& holds) const {
  Notes out;
  if (!healths.empty())
    out.healths = out.batch.add(sql::note_health{
        .endpoints = std::views::transform(healths, [](const HealthChange& c) { return c.endpoint.uuid; }),
        .are_failing = std::views::transform(healths, &HealthChange::is_failing),
        .breakers = std::views::transform(healths, &HealthChange::breaker),
        .at = std::views::transform(healths, &HealthChange::at),
        .failures = std::views::transform(healths, &HealthChange::failures),
        .probe_errors = std::views::transform(healths, &HealthChange::probe_error),
        .succeeded_at = std::views::transform(healths, &HealthChange::succeeded_at),
        .next_probes_at = std::views::transform(healths, &HealthChange::next_probe_at)});
  if (!holds.empty())
    out.holds = out.batch.add(sql::note_holds{
        .endpoints = std::views::keys(holds) | std::views::transform(&model::EndpointId::uuid),
        .reasons = std::views::values(holds),
        .node = node_.uuid});
  return out;
}

runtime::Task<bool> EndpointWriter::write_notes() {
  const auto healths = std::exchange(health_changes_, {});
  Holds holds = std::exchange(holds_, {});
  if (healths.empty() && holds.empty()) co_return true;
  Notes out = notes(healths, holds);
  try {
    const auto deadline = base::BootClock::now() + kDatabaseWait;
    pg::Results results = co_await link_.run(std::move(out.batch), deadline);
    std::set<base::Uuid> locked;
    collect(results, out.healths, locked);
    collect(results, out.holds, locked);
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
                                 const std::set<base::Uuid>& locked) {
  if (locked.empty()) return;
  for (const HealthChange& change : healths)
    if (locked.contains(change.endpoint.uuid)) note_health_unless_newer(change);
  std::erase_if(holds, [&locked](const auto& hold) { return !locked.contains(hold.first.uuid); });
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

// True also for a change that Postgres rejects: the next response of that kind requests it again.
runtime::Task<bool> EndpointWriter::write_status(const StatusChange& change) {
  pg::Batch out;
  const base::Uuid endpoint = change.endpoint.uuid;
  const bool is_disable = change.what == Verdict::Endpoint::disable;
  if (is_disable)
    out.add(sql::disable_endpoint{.reason = change.reason, .endpoint = endpoint});
  else
    out.add(sql::pause_endpoint{.reason = change.reason, .endpoint = endpoint});
  const auto status_now = out.add(sql::endpoint_status{.endpoint = endpoint});
  try {
    const auto deadline = base::BootClock::now() + kDatabaseWait;
    pg::Results results = co_await link_.run(std::move(out), deadline);
    const auto found = results.take(status_now);
    const auto status = found.empty() ? std::string_view() : found.front().status;
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
  OutageClock outage(link_);
  while (is_running_ && base::BootClock::now() < deadline && !outage.is_too_long()) {
    const auto next_look = OutageClock::next_look(deadline);
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
