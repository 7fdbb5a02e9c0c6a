#include "postrider/delivery/attempt/verdict.hpp"

#include <gtest/gtest.h>

#include "postrider/delivery/attempt/attempt.hpp"
#include "postrider/http/client/client.hpp"

namespace postrider::delivery {
namespace {

using base::Timestamp;
using std::chrono::hours;
using std::chrono::seconds;
using Kind = Verdict::Kind;
using Signal = Verdict::Signal;
using Endpoint = Verdict::Endpoint;

const Timestamp now = *base::parse_rfc3339("2026-04-08T10:15:30Z");
const Outcome rejected = Unreachable{http::NetError::connection_refused};

Outcome answer(int status, std::optional<seconds> retry_after = {}) {
  return Responded{.status = status, .retry_after = retry_after};
}
AttemptContext attempt_number(int number) {
  return {.number = number, .created_at = now - hours(1), .now = now};
}

struct Meaning {
  std::string name;
  Outcome outcome;
  Kind kind;
  Signal signal;
  Cause cause = Cause::rejected;
  Endpoint endpoint = Endpoint::unchanged;
};

void expect_meaning(const Meaning& expected, const RetryPolicy& policy) {
  SCOPED_TRACE(expected.name);
  const Verdict verdict = decide(expected.outcome, attempt_number(1), policy);
  EXPECT_EQ(verdict.kind, expected.kind);
  EXPECT_EQ(verdict.signal, expected.signal);
  EXPECT_EQ(verdict.endpoint, expected.endpoint);
  if (expected.kind == Kind::dead_letter) {
    EXPECT_EQ(verdict.cause, expected.cause);
  }
  if (expected.kind == Kind::retrying) {
    EXPECT_EQ(verdict.retry_at, now + seconds(30));
  }
}

TEST(Decide, Every2xxIsDelivered) {
  for (int status = 200; status < 300; ++status)
    expect_meaning({std::to_string(status), answer(status), Kind::delivered, Signal::succeeded}, {});
}

TEST(Decide, WhatMayPassIsRetried) {
  for (const int status : {408, 409, 425, 429, 500, 501, 502, 503, 504, 511, 599})
    expect_meaning({std::to_string(status), answer(status), Kind::retrying, Signal::failed}, {});
  expect_meaning({"unreachable", rejected, Kind::retrying, Signal::failed}, {});
}

TEST(Decide, AStatusThatIsNoneIsRetried) {
  for (const int status : {-1, 0, 1, 99, 100, 101, 103, 199, 600, 999, 100'000})
    expect_meaning({std::to_string(status), answer(status), Kind::retrying, Signal::failed}, {});
}

TEST(Decide, RedirectsAndOther4xxAreRejectedAtOnce) {
  for (const int status :
       {300, 301, 302, 304, 307, 308, 399, 400, 401, 403, 404, 405, 413, 422, 426, 451, 499})
    expect_meaning(
        {std::to_string(status), answer(status), Kind::dead_letter, Signal::rejected, Cause::rejected}, {});
}

TEST(Decide, GoneDisablesTheEndpointWhateverThePolicy) {
  for (const auto on_rejected : {OnRejected::dead_letter, OnRejected::retry, OnRejected::pause})
    expect_meaning({"410", answer(410), Kind::dead_letter, Signal::rejected, Cause::gone, Endpoint::disable},
                   {.on_rejected = on_rejected, .schedule = {}});
}

TEST(Decide, ABlockedDestinationIsADeadLetterAndSaysNothingAboutTheEndpoint) {
  expect_meaning({"blocked", Blocked{}, Kind::dead_letter, Signal::neutral, Cause::blocked}, {});
}

TEST(Decide, ThisNodesOwnTroubleUsesUpNothing) {
  const Verdict verdict = decide(NotAttempted{}, attempt_number(8), {});
  EXPECT_EQ(verdict.kind, Kind::retrying);
  EXPECT_EQ(verdict.signal, Signal::neutral);
  EXPECT_FALSE(verdict.raises_attempts);
}

TEST(Decide, FollowsTheDefaultScheduleWithUpTo20PercentMore) {
  const int delays[] = {30, 120, 600, 1'800, 7'200, 21'600, 86'400, 86'400};
  const RetryPolicy policy{.max_attempts = 100, .schedule = {}};
  for (int number = 1; number <= 8; ++number) {
    AttemptContext attempt = attempt_number(number);
    EXPECT_EQ(decide(rejected, attempt, policy).retry_at, now + seconds(delays[number - 1])) << number;
    attempt.jitter = 0.5;
    EXPECT_EQ(decide(rejected, attempt, policy).retry_at, now + seconds(delays[number - 1] * 11 / 10))
        << number;
  }
}

TEST(Decide, TheLastAttemptExhausts) {
  EXPECT_EQ(decide(rejected, attempt_number(7), {}).kind, Kind::retrying);
  const Verdict verdict = decide(rejected, attempt_number(8), {});
  EXPECT_EQ(verdict.kind, Kind::dead_letter);
  EXPECT_EQ(verdict.cause, Cause::exhausted);
  EXPECT_EQ(verdict.signal, Signal::failed);
  EXPECT_EQ(decide(answer(200), attempt_number(8), {}).kind, Kind::delivered);
}

TEST(Decide, TheLaterOfRetryAfterAndTheScheduleWins) {
  EXPECT_EQ(decide(answer(500, seconds(10)), attempt_number(1), {}).retry_at, now + seconds(30));
  EXPECT_EQ(decide(answer(500, seconds(31)), attempt_number(1), {}).retry_at, now + seconds(31));
  EXPECT_EQ(decide(answer(500, hours(48)), attempt_number(1), {}).retry_at, now + hours(24));
  EXPECT_EQ(decide(answer(500, seconds(-5)), attempt_number(1), {}).retry_at, now + seconds(30));
}

TEST(Decide, RetryAfterHoldsTheEndpointOn429And503Only) {
  for (const int status : {429, 503})
    EXPECT_EQ(decide(answer(status, seconds(7)), attempt_number(1), {}).hold_endpoint_until,
              now + seconds(7));
  for (const int status : {200, 400, 408, 425, 500, 502})
    EXPECT_EQ(decide(answer(status, seconds(7)), attempt_number(1), {}).hold_endpoint_until, std::nullopt);
  EXPECT_EQ(decide(answer(503), attempt_number(1), {}).hold_endpoint_until, std::nullopt);
  EXPECT_EQ(decide(answer(503, seconds(0)), attempt_number(1), {}).hold_endpoint_until, std::nullopt);
  // Also when this delivery is over.
  EXPECT_EQ(decide(answer(429, hours(48)), attempt_number(8), {}).hold_endpoint_until, now + hours(24));
}

TEST(Decide, RejectionsAreRetriedIfWished) {
  const RetryPolicy policy{.on_rejected = OnRejected::retry, .schedule = {}};
  const Verdict verdict = decide(answer(404, seconds(100)), attempt_number(1), policy);
  EXPECT_EQ(verdict.kind, Kind::retrying);
  EXPECT_EQ(verdict.signal, Signal::rejected);
  EXPECT_EQ(verdict.retry_at, now + seconds(100));
  EXPECT_EQ(decide(answer(404), attempt_number(8), policy).cause, Cause::exhausted);
}

TEST(Decide, TheTenthRejectionInARowPausesAndKeepsTheDelivery) {
  const RetryPolicy policy{.on_rejected = OnRejected::pause, .schedule = {}};
  for (const int before : {0, 8, 9, 10, 50}) {
    AttemptContext attempt = attempt_number(20);  // more than max_attempts: rejections do not use them up
    attempt.rejected_in_row = before;
    const Verdict verdict = decide(answer(404), attempt, policy);
    EXPECT_EQ(verdict.kind, Kind::retrying) << before;
    EXPECT_EQ(verdict.endpoint, before >= 9 ? Endpoint::pause : Endpoint::unchanged) << before;
  }
}

TEST(Decide, GivesUpByAgeNotCountingPausedTime) {
  const RetryPolicy policy{.give_up = hours(2), .schedule = {}};
  AttemptContext attempt{.number = 1, .created_at = now - hours(2), .now = now};
  EXPECT_EQ(decide(rejected, attempt, policy).cause, Cause::expired);
  EXPECT_EQ(decide(rejected, attempt, policy).kind, Kind::dead_letter);
  EXPECT_EQ(decide(answer(200), attempt, policy).kind, Kind::delivered);

  attempt.paused_for = hours(1);
  EXPECT_EQ(decide(rejected, attempt, policy).kind, Kind::retrying);
}

TEST(Decide, ARetryIsNeverDueAfterTheDeadline) {
  const RetryPolicy policy{.give_up = seconds(40), .schedule = {}};
  const AttemptContext attempt{.number = 1, .created_at = now - seconds(20), .now = now};
  EXPECT_EQ(decide(rejected, attempt, policy).retry_at, now + seconds(20));
  EXPECT_EQ(decide(answer(503, seconds(3'600)), attempt, policy).retry_at, now + seconds(20));
}

TEST(Decide, AFailedProbeRaisesNobodysAttempts) {
  AttemptContext attempt = attempt_number(8);
  attempt.is_probe = true;
  const Verdict failed = decide(rejected, attempt, {});
  EXPECT_EQ(failed.kind, Kind::retrying);
  EXPECT_EQ(failed.signal, Signal::failed);
  EXPECT_FALSE(failed.raises_attempts);
  EXPECT_EQ(failed.retry_at, now);

  EXPECT_TRUE(decide(answer(204), attempt, {}).raises_attempts);
  EXPECT_TRUE(decide(answer(404), attempt, {}).raises_attempts);

  attempt.number = 1;
  attempt.created_at = now - hours(73);
  const Verdict last = decide(rejected, attempt, {});
  EXPECT_EQ(last.kind, Kind::dead_letter);
  EXPECT_EQ(last.cause, Cause::expired);
  EXPECT_TRUE(last.raises_attempts) << "it was the last attempt, and is recorded as such";
}

TEST(Decide, WhatWasNoAttemptIsNeverTheLastOne) {
  const RetryPolicy policy{.give_up = hours(1), .schedule = {}};
  AttemptContext attempt{.number = 1, .created_at = now - hours(2), .now = now};
  EXPECT_EQ(decide(NotAttempted{}, attempt, policy).kind, Kind::retrying);
  attempt.is_probe = true;
  EXPECT_EQ(decide(NotAttempted{}, attempt, policy).kind, Kind::retrying);
}

TEST(AttemptFacts, APreviewThatIsCutHidesTheStartOfACard) {
  http::ReceivedResponse answer;
  answer.status = 422;
  answer.body_start = std::string(1'008, 'x') + " 411111111111111";
  answer.body_bytes = 2'000;
  answer.is_complete = true;  // read to its end; what is kept of it is not
  http::Exchange exchange;
  exchange.outcome = answer;
  const AttemptFacts facts = attempt_facts(exchange, now);
  EXPECT_EQ(facts.preview->find("4111"), std::string::npos) << *facts.preview;
}

TEST(Labels, AreThoseOfTheContract) {
  EXPECT_EQ(label(Cause::endpoint_disabled), "endpoint_disabled");
  EXPECT_EQ(label(Cause::exhausted), "exhausted");
}

TEST(OutcomeOf, TellsAnswersFailuresAndWhatHasNoResult) {
  http::Exchange exchange;
  EXPECT_FALSE(outcome_of(exchange, now).has_value());  // canceled

  http::ReceivedResponse with_header;
  with_header.status = 503;
  with_header.retry_after = "120";
  exchange.outcome = with_header;
  const auto answered = outcome_of(exchange, now);
  ASSERT_TRUE(answered.has_value());
  EXPECT_EQ(std::get<Responded>(*answered).status, 503);
  EXPECT_EQ(std::get<Responded>(*answered).retry_after, seconds(120));

  exchange.outcome = http::NetFailure{http::NetError::tls_expired, {}, {}};
  EXPECT_EQ(std::get<Unreachable>(*outcome_of(exchange, now)).reason, http::NetError::tls_expired);
  exchange.outcome = http::NetFailure{http::NetError::blocked, {}, {}};
  EXPECT_TRUE(std::holds_alternative<Blocked>(*outcome_of(exchange, now)));
  exchange.outcome = http::NetFailure{http::NetError::local_failure, {}, {}};
  EXPECT_TRUE(std::holds_alternative<NotAttempted>(*outcome_of(exchange, now)));
}

}  // namespace
}  // namespace postrider::delivery
