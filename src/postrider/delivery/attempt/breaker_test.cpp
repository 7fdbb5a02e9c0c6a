#include "postrider/delivery/attempt/breaker.hpp"

#include <gtest/gtest.h>

namespace postrider::delivery {
namespace {

using base::SteadyTime;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

const SteadyTime start = SteadyTime(seconds(1'000));
constexpr int cap = 10;

void fail_times(Breaker& breaker, int times, SteadyTime now) {
  for (int i = 0; i < times; ++i) breaker.on_transient_failure({.now = now});
}
Breaker opened_at(SteadyTime now) {
  Breaker breaker;
  fail_times(breaker, 5, now);
  return breaker;
}
// Fails the probe that is due, and says how long until the next one.
SteadyTime::duration fail_probe(Breaker& breaker) {
  const SteadyTime now = breaker.next_probe_at();
  EXPECT_TRUE(breaker.is_probe_due(now));
  breaker.start_probe();
  breaker.on_transient_failure({.now = now, .was_probe = true});
  return breaker.next_probe_at() - now;
}

TEST(Breaker, OpensAfterFiveTransientFailuresInARow) {
  Breaker breaker;
  fail_times(breaker, 4, start);
  EXPECT_FALSE(breaker.is_open());
  EXPECT_EQ(breaker.allowed_in_flight(start, cap), cap);
  fail_times(breaker, 1, start);
  EXPECT_TRUE(breaker.is_open());
  EXPECT_EQ(breaker.label(), "open");
  EXPECT_EQ(breaker.allowed_in_flight(start, cap), 0);
}

TEST(Breaker, AnyAnswerInBetweenStartsTheCountAgain) {
  for (const bool is_rejection : {true, false}) {
    Breaker breaker;
    fail_times(breaker, 4, start);
    if (is_rejection) {
      breaker.on_rejection();
    } else {
      breaker.on_success(cap);
    }
    fail_times(breaker, 4, start);
    EXPECT_FALSE(breaker.is_open());
    EXPECT_EQ(breaker.allowed_in_flight(start, cap), cap);
  }
}

TEST(Breaker, WhileOpenLetsOneProbeOutWhenItIsDue) {
  Breaker breaker = opened_at(start);
  EXPECT_EQ(breaker.next_probe_at(), start + seconds(5));
  EXPECT_FALSE(breaker.is_probe_due(start + milliseconds(4'999)));
  EXPECT_EQ(breaker.allowed_in_flight(start + seconds(5), cap), 1);
  breaker.start_probe();
  EXPECT_EQ(breaker.allowed_in_flight(start + minutes(60), cap), 0);
  breaker.abandon_probe();
  EXPECT_TRUE(breaker.is_probe_due(start + minutes(60)));
}

TEST(Breaker, ProbesAreFartherAndFartherApartUpToFiveMinutes) {
  Breaker breaker = opened_at(start);
  for (const int expected : {10, 20, 40, 80, 160, 300, 300})
    EXPECT_EQ(fail_probe(breaker), seconds(expected));
}

TEST(Breaker, JitterStretchesTheIntervalByUpToAFifth) {
  Breaker breaker({.failures_to_open = 1});
  breaker.on_transient_failure({.now = start, .jitter = 0.5});
  EXPECT_EQ(breaker.next_probe_at(), start + milliseconds(5'500));
}

TEST(Breaker, LateFailuresOfEarlierAttemptsDoNotDelayTheProbe) {
  Breaker breaker = opened_at(start);
  fail_times(breaker, 20, start + seconds(4));
  EXPECT_EQ(breaker.next_probe_at(), start + seconds(5));
}

TEST(Breaker, ASuccessfulProbeLetsTheBacklogOutAtARamp) {
  Breaker breaker = opened_at(start);
  breaker.start_probe();
  breaker.on_success(cap);
  EXPECT_FALSE(breaker.is_open());
  EXPECT_EQ(breaker.label(), "ramping");
  int rounds = 0;
  std::vector<int> allowed;
  while (breaker.label() == "ramping" && ++rounds < 100) {
    allowed.push_back(breaker.allowed_in_flight(start, cap));
    for (int i = allowed.back(); i > 0; --i) breaker.on_success(cap);
  }
  EXPECT_EQ(allowed, (std::vector<int>{1, 2, 4, 8}));
  EXPECT_EQ(breaker.label(), "closed");
  EXPECT_EQ(breaker.allowed_in_flight(start, cap), cap);
}

TEST(Breaker, ASuccessOfAnEarlierAttemptClosesToo) {
  Breaker breaker = opened_at(start);
  breaker.on_success(cap);
  EXPECT_EQ(breaker.allowed_in_flight(start, cap), 1);
}

TEST(Breaker, ARejectedProbeShowsThatTheEndpointIsUp) {
  Breaker breaker = opened_at(start);
  breaker.start_probe();
  breaker.on_rejection();
  EXPECT_EQ(breaker.allowed_in_flight(start, cap), 1);
  breaker.on_rejection();
  EXPECT_EQ(breaker.allowed_in_flight(start, cap), 1);
}

TEST(Breaker, AFailureOnTheRampHalvesIt) {
  Breaker breaker;
  breaker.start_ramp();
  for (int i = 0; i < 7; ++i) breaker.on_success(100);
  EXPECT_EQ(breaker.allowed_in_flight(start, 100), 8);
  fail_times(breaker, 1, start);
  EXPECT_EQ(breaker.allowed_in_flight(start, 100), 4);
}

TEST(Breaker, OneThatOpensAgainOnItsRampKeepsItsInterval) {
  Breaker breaker = opened_at(start);
  fail_probe(breaker);
  fail_probe(breaker);  // the next interval would be 40 s
  breaker.on_success(cap);
  fail_times(breaker, 5, start);
  EXPECT_EQ(breaker.next_probe_at(), start + seconds(40));
}

TEST(Breaker, OneThatClosedFullyStartsOver) {
  Breaker breaker = opened_at(start);
  fail_probe(breaker);
  for (int i = 0; i < 20; ++i) breaker.on_success(cap);
  EXPECT_EQ(breaker.label(), "closed");
  fail_times(breaker, 5, start);
  EXPECT_EQ(breaker.next_probe_at(), start + seconds(5));
}

TEST(Breaker, ResetClosesAtOnceAndTakeoverRamps) {
  Breaker breaker = opened_at(start);
  breaker.reset();
  EXPECT_EQ(breaker.allowed_in_flight(start, cap), cap);
  breaker.start_ramp();
  EXPECT_EQ(breaker.allowed_in_flight(start, cap), 1);
}

TEST(Breaker, TheResultOfAProbeThatAResetOvertookIsAnOrdinaryOne) {
  Breaker breaker = opened_at(start);
  breaker.start_probe();
  breaker.reset();
  breaker.on_transient_failure({.now = start, .was_probe = true});
  EXPECT_FALSE(breaker.is_open());
}

TEST(Breaker, AStrictEndpointIsClosedAgainAfterOneSuccess) {
  Breaker breaker;
  breaker.start_ramp();
  breaker.on_success(1);
  EXPECT_EQ(breaker.label(), "closed");
}

}  // namespace
}  // namespace postrider::delivery
