#include "postrider/delivery/attempt/verdict.hpp"

#include <algorithm>

#include "postrider/base/check.hpp"
#include "postrider/http/retry_after.hpp"

namespace postrider::delivery {
namespace {

using base::Timestamp;
using std::chrono::duration_cast;
using std::chrono::microseconds;

enum class Meaning { success, transient, gone, rejection, blocked_by_guard, no_attempt };

Meaning meaning_of_status(int status) {
  if (status >= 200 && status < 300) return Meaning::success;
  if (status == 408 || status == 409 || status == 425 || status == 429) return Meaning::transient;
  if (status == 410) return Meaning::gone;
  if (status >= 300 && status < 500) return Meaning::rejection;
  // 5xx; and an interim or impossible status, which counts as no response.
  return Meaning::transient;
}

Meaning meaning_of(const Outcome& outcome) {
  if (std::holds_alternative<Blocked>(outcome)) return Meaning::blocked_by_guard;
  if (std::holds_alternative<NotAttempted>(outcome)) return Meaning::no_attempt;
  if (const auto* answered = std::get_if<Responded>(&outcome)) return meaning_of_status(answered->status);
  return Meaning::transient;
}

std::optional<Timestamp> asked_to_wait_until(const Outcome& outcome, Timestamp now) {
  const auto* answered = std::get_if<Responded>(&outcome);
  if (answered == nullptr || !answered->retry_after) return std::nullopt;
  return now + std::clamp(*answered->retry_after, std::chrono::seconds(0), http::kRetryAfterMax);
}

std::optional<Timestamp> hold_of(const Outcome& outcome, Timestamp now) {
  const auto* answered = std::get_if<Responded>(&outcome);
  if (answered == nullptr || (answered->status != 429 && answered->status != 503)) return std::nullopt;
  const std::optional<Timestamp> until = asked_to_wait_until(outcome, now);
  return until && *until > now ? until : std::nullopt;
}

Timestamp scheduled(const AttemptContext& attempt, const RetryPolicy& policy) {
  const microseconds delay = policy.schedule.delay_after(attempt.number);
  const auto random = microseconds(
      static_cast<int64_t>(static_cast<double>(delay.count()) * retry_jitter_max * attempt.jitter));
  return attempt.now + delay + random;
}

Verdict dead_letter(Verdict verdict, Cause cause) {
  verdict.kind = Verdict::Kind::dead_letter;
  verdict.cause = cause;
  return verdict;
}

// Fills in when to try again, or that the time for it is over.
Verdict retry(Verdict verdict, const Outcome& outcome, const AttemptContext& attempt,
              const RetryPolicy& policy) {
  const Age age{.created_at = attempt.created_at, .paused_for = attempt.paused_for};
  if (is_expired(age, policy, attempt.now)) {
    verdict.raises_attempts = true;  // a probe, too: it was this delivery's last attempt
    return dead_letter(verdict, Cause::expired);
  }

  // A failed probe leaves its delivery as it was: due, and waiting for the breaker.
  Timestamp at = attempt.is_probe && !verdict.raises_attempts ? attempt.now : scheduled(attempt, policy);
  if (const auto asked = asked_to_wait_until(outcome, attempt.now)) at = std::max(at, *asked);
  verdict.kind = Verdict::Kind::retrying;
  verdict.retry_at = std::min(at, deadline(age, policy));
  return verdict;
}

Verdict decide_transient(const Outcome& outcome, const AttemptContext& attempt, const RetryPolicy& policy) {
  Verdict verdict;
  verdict.signal = Verdict::Signal::failed;
  verdict.hold_endpoint_until = hold_of(outcome, attempt.now);
  verdict.raises_attempts = !attempt.is_probe;
  if (verdict.raises_attempts && attempt.number >= policy.max_attempts)
    return dead_letter(verdict, Cause::exhausted);
  return retry(verdict, outcome, attempt, policy);
}

// A problem of this node: wait as after a failure, but count it neither for the delivery nor for its
// endpoint. It is not the attempt that a delivery may be owed before it expires.
Verdict decide_no_attempt(const AttemptContext& attempt, const RetryPolicy& policy) {
  Verdict verdict;
  verdict.kind = Verdict::Kind::retrying;
  verdict.signal = Verdict::Signal::neutral;
  verdict.raises_attempts = false;
  verdict.retry_at = scheduled(attempt, policy);
  return verdict;
}

Verdict decide_rejection(const Outcome& outcome, const AttemptContext& attempt, const RetryPolicy& policy) {
  Verdict verdict;
  verdict.signal = Verdict::Signal::rejected;
  switch (policy.on_rejected) {
    case OnRejected::dead_letter:
      return dead_letter(verdict, Cause::rejected);
    case OnRejected::retry:
      if (attempt.number >= policy.max_attempts) return dead_letter(verdict, Cause::exhausted);
      break;
    case OnRejected::pause:
      if (attempt.rejected_in_row + 1 >= rejections_to_pause) verdict.endpoint = Verdict::Endpoint::pause;
      break;
  }
  return retry(verdict, outcome, attempt, policy);
}

}  // namespace

std::string_view label(Cause cause) {
  switch (cause) {
    case Cause::rejected:
      return "rejected";
    case Cause::gone:
      return "gone";
    case Cause::exhausted:
      return "exhausted";
    case Cause::expired:
      return "expired";
    case Cause::blocked:
      return "blocked";
    case Cause::endpoint_disabled:
      return "endpoint_disabled";
  }
  return "";
}

Verdict decide(const Outcome& outcome, const AttemptContext& attempt, const RetryPolicy& policy) {
  CHECK(attempt.number >= 1);
  CHECK(attempt.jitter >= 0 && attempt.jitter < 1);
  switch (meaning_of(outcome)) {
    case Meaning::success:
      return {.kind = Verdict::Kind::delivered, .signal = Verdict::Signal::succeeded};
    case Meaning::transient:
      return decide_transient(outcome, attempt, policy);
    case Meaning::rejection:
      return decide_rejection(outcome, attempt, policy);
    case Meaning::gone: {
      Verdict verdict = dead_letter({.signal = Verdict::Signal::rejected}, Cause::gone);
      verdict.endpoint = Verdict::Endpoint::disable;
      return verdict;
    }
    case Meaning::no_attempt:
      return decide_no_attempt(attempt, policy);
    case Meaning::blocked_by_guard:
      return dead_letter({.signal = Verdict::Signal::neutral}, Cause::blocked);
  }
  return {};
}

Timestamp deadline(const Age& age, const RetryPolicy& policy) {
  return age.created_at + policy.give_up + age.paused_for;
}

bool is_expired(const Age& age, const RetryPolicy& policy, Timestamp now) {
  return now >= deadline(age, policy);
}

}  // namespace postrider::delivery
