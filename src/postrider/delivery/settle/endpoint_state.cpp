#include "postrider/delivery/settle/endpoint_state.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace postrider::delivery {

namespace {

using namespace std::chrono_literals;

constexpr auto kStatusPause = 1s;    // until a status that was just written reaches the lane
constexpr auto kNoteInterval = 60s;  // successes and failures that change nothing are written this often

}  // namespace

void EndpointState::load(Lane& lane) {
  const registry::EndpointConfig& endpoint = lane.config()->endpoint;
  lane.health_.is_breaker_open = endpoint.is_breaker_open;
  lane.health_.is_failing = endpoint.is_failing;
  lane.health_.failures = endpoint.failures;
  lane.health_.succeeded_at = endpoint.last_success_at;
  lane.health_.noted_success_at = endpoint.last_success_at;
}

void EndpointState::record(Lane& lane, const Observation& seen, const Now& now) {
  signal(lane, seen, now);
  const Verdict& verdict = seen.verdict;
  if (verdict.hold_endpoint_until) lane.hold_until(now.steady_of(*verdict.hold_endpoint_until));
  if (verdict.endpoint != Verdict::Endpoint::unchanged) {
    lane.hold_until(now.steady + kStatusPause);
    changes_.change_status({lane.endpoint, verdict.endpoint, seen.facts.error_detail.value_or("")});
  }
  if (verdict.signal != Verdict::Signal::neutral) note_health(lane, seen, now);
}

void EndpointState::signal(Lane& lane, const Observation& seen, const Now& now) {
  switch (seen.verdict.signal) {
    case Verdict::Signal::succeeded:
      lane.breaker().on_success(lane.config()->endpoint.max_in_flight);
      lane.health_.rejected_in_row = 0;
      break;
    case Verdict::Signal::failed:
      lane.breaker().on_transient_failure(
          {.now = now.steady, .jitter = seen.jitter, .was_probe = seen.is_probe});
      break;
    case Verdict::Signal::rejected:
      lane.breaker().on_rejection();
      ++lane.health_.rejected_in_row;
      break;
    case Verdict::Signal::neutral:
      if (seen.is_probe) lane.breaker().abandon_probe();
      break;
  }
}

// Written when it changes, for the first ten failures, and about once a minute so that the time of the last
// success and the number of failures are known. Probes count: while the breaker is open nothing else is sent.
void EndpointState::note_health(Lane& lane, const Observation& seen, const Now& at) {
  const base::Timestamp now = at.db;
  const bool is_failing = seen.verdict.signal != Verdict::Signal::succeeded;
  const bool is_breaker_open = lane.breaker().is_open();
  std::optional<std::string> probe_error;
  if (seen.is_probe && is_failing)
    probe_error = seen.facts.error_detail ? seen.facts.error_detail : seen.facts.error;
  auto& health = lane.health_;
  const int failures = is_failing ? health.failures + 1 : 0;
  health.failures = failures;
  if (!is_failing) health.succeeded_at = now;
  const auto& noted_at = is_failing ? health.noted_failure_at : health.noted_success_at;
  const bool is_due = !noted_at || now - *noted_at >= kNoteInterval;
  if (health.is_failing == is_failing && health.is_breaker_open == is_breaker_open &&
      (failures == 0 || failures > kFailuresWritten) && !probe_error && !is_due)
    return;
  health.is_failing = is_failing;
  health.is_breaker_open = is_breaker_open;
  health.noted_success_at = health.succeeded_at;
  if (is_failing) health.noted_failure_at = now;
  std::optional<base::Timestamp> next_probe_at;
  if (is_breaker_open)
    next_probe_at = now + std::chrono::duration_cast<std::chrono::microseconds>(std::max(
                              lane.breaker().next_probe_at() - at.steady, base::SteadyTime::duration(0)));
  changes_.note_health({.endpoint = lane.endpoint,
                        .is_failing = is_failing,
                        .breaker = is_breaker_open ? "open" : "closed",
                        .at = now,
                        .failures = failures,
                        .probe_error = std::move(probe_error),
                        .succeeded_at = health.succeeded_at,
                        .next_probe_at = next_probe_at});
}

// The endpoint's row may have been written by another node, so it decides whether there is a change.
void EndpointState::note_hold(const Lane& lane) {
  const LaneConfig& config = *lane.config();
  if (config.is_first_lookup) return;
  std::string reason = config.held_reason();
  if (reason != config.endpoint.held_reason) changes_.note_hold(lane.endpoint, std::move(reason));
}

void EndpointState::end_hold(const Lane& lane) {
  if (lane.config() && !lane.config()->held_reason().empty()) changes_.note_hold(lane.endpoint, "");
}

}  // namespace postrider::delivery
