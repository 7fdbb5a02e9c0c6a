#include "postrider/delivery/settle/endpoint_state.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postrider::delivery {
namespace {

using namespace std::chrono_literals;

struct EndpointStateTest : testing::Test, EndpointChanges {
  EndpointStateTest() : lane({}, {0, 1}, totals, {.failures_to_open = 3}) { configure(); }

  void change_status(StatusChange change) override { statuses.push_back(std::move(change)); }
  void note_health(HealthChange change) override { healths.push_back(std::move(change)); }
  void note_hold(model::EndpointId, std::string reason) override { holds.push_back(std::move(reason)); }

  void configure(std::string why_unsigned = "", std::string held_reason = "") {
    auto config = std::make_shared<LaneConfig>();
    config->mode = LaneConfig::Mode::send;
    config->endpoint.max_in_flight = 8;
    config->why_unsigned = std::move(why_unsigned);
    config->endpoint.held_reason = std::move(held_reason);
    lane.configure(std::move(config), now);
  }
  void record(Verdict::Signal signal, bool is_probe = false) {
    Verdict verdict;
    verdict.signal = signal;
    record(verdict, is_probe);
  }
  void record(const Verdict& verdict, bool is_probe = false) {
    state.record(lane, {.verdict = verdict, .facts = facts, .is_probe = is_probe, .jitter = 0}, now);
  }

  BufferTotals totals;
  Now now{base::SteadyTime(500s), base::Timestamp(1000s)};
  Lane lane;
  AttemptFacts facts;
  std::vector<StatusChange> statuses;
  std::vector<HealthChange> healths;
  std::vector<std::string> holds;
  EndpointState state{*this};
};

TEST_F(EndpointStateTest, SuccessesAreWrittenOnceAMinute) {
  const base::Timestamp first = now.db;
  for (int i = 0; i < 60; ++i, now.db += 1s) record(Verdict::Signal::succeeded);
  ASSERT_EQ(healths.size(), 1u);
  EXPECT_EQ(healths[0].succeeded_at, first);
  EXPECT_FALSE(healths[0].is_failing);
  record(Verdict::Signal::succeeded);
  ASSERT_EQ(healths.size(), 2u);
  EXPECT_EQ(healths[1].succeeded_at, first + 60s);
}

TEST_F(EndpointStateTest, TheFirstFailureIsWrittenWithTheLastSuccess) {
  record(Verdict::Signal::succeeded);
  now.db += 10s;
  const base::Timestamp last = now.db;
  record(Verdict::Signal::succeeded);
  now.db += 10s;
  record(Verdict::Signal::failed);
  EXPECT_TRUE(healths.back().is_failing);
  EXPECT_EQ(healths.back().succeeded_at, last);
}

TEST_F(EndpointStateTest, WhatWasWrittenAboutSuccessesIsTakenOver) {
  auto config = std::make_shared<LaneConfig>();
  config->mode = LaneConfig::Mode::send;
  config->endpoint.max_in_flight = 8;
  config->endpoint.last_success_at = now.db - 30s;
  lane.configure(std::move(config), now);
  state.load(lane);
  record(Verdict::Signal::succeeded);
  EXPECT_EQ(healths.size(), 0u);
}

TEST_F(EndpointStateTest, HealthIsWrittenWhenItChanges) {
  record(Verdict::Signal::succeeded);
  healths.clear();
  record(Verdict::Signal::failed);
  ASSERT_EQ(healths.size(), 1u);
  EXPECT_TRUE(healths[0].is_failing);
  record(Verdict::Signal::succeeded);
  ASSERT_EQ(healths.size(), 2u);
  EXPECT_FALSE(healths[1].is_failing);
  EXPECT_EQ(healths[1].failures, 0);
  record(Verdict::Signal::succeeded);
  EXPECT_EQ(healths.size(), 2u);
}

TEST_F(EndpointStateTest, AnOpenBreakerIsWritten) {
  for (int i = 0; i < 3; ++i) record(Verdict::Signal::failed);
  EXPECT_TRUE(lane.breaker().is_open());
  EXPECT_EQ(healths.back().breaker, "open");
}

TEST_F(EndpointStateTest, EveryFailedProbeIsWrittenWithItsError) {
  for (int i = 0; i < 3; ++i) record(Verdict::Signal::failed);
  const size_t before = healths.size();
  facts.error = "timeout";
  record(Verdict::Signal::failed, true);
  record(Verdict::Signal::failed, true);
  ASSERT_EQ(healths.size(), before + 2);
  EXPECT_EQ(healths.back().probe_error, "timeout");
}

TEST_F(EndpointStateTest, TheFirstTenFailuresAreWrittenAtOnceAndLaterOnesOnceAMinute) {
  lane.breaker() = Breaker({.failures_to_open = 1000});
  for (int i = 0; i < 9; ++i) record(Verdict::Signal::failed);
  EXPECT_EQ(healths.size(), 9u);
  for (int i = 0; i < 9; ++i) record(Verdict::Signal::failed);
  ASSERT_EQ(healths.size(), 10u);
  EXPECT_EQ(healths.back().failures, EndpointState::kFailuresWritten);
  now.db += 60s;
  record(Verdict::Signal::failed);
  ASSERT_EQ(healths.size(), 11u);
  EXPECT_EQ(healths.back().failures, 19);
}

TEST_F(EndpointStateTest, TheTimeOfTheNextProbeIsWritten) {
  for (int i = 0; i < 3; ++i) record(Verdict::Signal::failed);
  EXPECT_EQ(healths.back().next_probe_at, now.db + 5s);
  now.steady += 5s;
  now.db += 5s;
  facts.error = "timeout";
  lane.breaker().start_probe();
  record(Verdict::Signal::failed, true);
  EXPECT_EQ(healths.back().next_probe_at, now.db + 10s);
  now.steady += 10s;
  now.db += 10s;
  record(Verdict::Signal::succeeded, true);
  EXPECT_EQ(healths.back().next_probe_at, std::nullopt);
}

TEST_F(EndpointStateTest, ANeutralResultSaysNothingAboutTheEndpoint) {
  record(Verdict::Signal::failed);
  record(Verdict::Signal::neutral);
  EXPECT_EQ(healths.size(), 1u);
}

TEST_F(EndpointStateTest, RejectionsAreCountedInARow) {
  record(Verdict::Signal::rejected);
  record(Verdict::Signal::rejected);
  EXPECT_EQ(EndpointState::rejected_in_row(lane), 2);
  record(Verdict::Signal::succeeded);
  EXPECT_EQ(EndpointState::rejected_in_row(lane), 0);
}

TEST_F(EndpointStateTest, AVerdictCanHoldAndDisableTheEndpoint) {
  Verdict verdict;
  verdict.signal = Verdict::Signal::rejected;
  verdict.hold_endpoint_until = now.db + 30s;
  verdict.endpoint = Verdict::Endpoint::disable;
  facts.error_detail = "the endpoint responded with 410";
  record(verdict);
  EXPECT_EQ(lane.held_until(), now.steady + 30s);
  ASSERT_EQ(statuses.size(), 1u);
  EXPECT_EQ(statuses[0].reason, "the endpoint responded with 410");
}

TEST_F(EndpointStateTest, AHoldIsWrittenOnlyIfTheEndpointsRowSaysSomethingElse) {
  configure("the secret cannot be read", "");
  state.note_hold(lane);
  configure("the secret cannot be read", "the secret cannot be read");
  state.note_hold(lane);
  configure("", "the secret cannot be read");
  state.note_hold(lane);
  EXPECT_THAT(holds, testing::ElementsAre("the secret cannot be read", ""));
}

}  // namespace
}  // namespace postrider::delivery
