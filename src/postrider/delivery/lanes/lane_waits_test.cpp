#include "postrider/delivery/lanes/lane_waits.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace postrider::delivery {
namespace {

using namespace std::chrono_literals;
using Reason = std::optional<WaitReason>;

struct LaneWaitsTest : testing::Test {
  LanePtr make_lane(const std::function<void(LaneConfig&)>& edit = {}) {
    model::EndpointId id;
    id.uuid.bytes[15] = static_cast<uint8_t>(lanes.size() + 1);
    auto lane = std::make_shared<Lane>(id, Lane::Home{3, 7}, totals, BreakerPolicy{.failures_to_open = 1});
    auto config = std::make_shared<LaneConfig>();
    config->mode = LaneConfig::Mode::send;
    config->endpoint.tenant_id = "acme";
    if (edit) edit(*config);
    lane->configure(std::move(config), now);
    chooser.join(*lane, "acme");
    lanes[id] = lane;
    return lane;
  }
  void fill(const LanePtr& lane, int rows, Turn turn = Turn::first) {
    for (int i = 0; i < rows; ++i) {
      QueueRow row;
      row.event = std::make_shared<model::EventContent>();
      row.key.due_at = now.db;
      row.key.id.uuid.bytes[15] = static_cast<uint8_t>(++rows_made);
      lane->buffer(turn).put_back(std::move(row));
    }
  }
  void pass(std::chrono::seconds time) {
    now.steady += time;
    now.db += time;
  }
  std::vector<LaneWait> sample() { return waits.sample(lanes, chooser, now); }
  // Once its rows have been due for a second: at the second sample.
  Reason reason() {
    pass(1s);
    sample();
    pass(1s);
    const auto found = sample();
    return found.empty() ? Reason{} : Reason{found.front().reason};
  }

  BufferTotals totals;
  Now now{base::SteadyTime(500s), base::Timestamp(1000s)};
  Chooser chooser{{.retry_in_flight_max = 1}};
  LaneTable::Lanes lanes;
  LaneWaits waits;
  int rows_made = 0;
};

TEST_F(LaneWaitsTest, ARowThatMayBeSentWaitsForNothing) {
  fill(make_lane(), 1);
  EXPECT_EQ(reason(), Reason{});
}

TEST_F(LaneWaitsTest, TheRateOfAnEndpoint) {
  const auto lane = make_lane([](LaneConfig& config) { config.endpoint.rate_per_second = 0.001; });
  fill(lane, 2);
  lane->start(Turn::first, now);
  EXPECT_EQ(reason(), WaitReason::rate);
}

TEST_F(LaneWaitsTest, RetryAfterCountsAsARate) {
  const auto lane = make_lane();
  fill(lane, 1);
  lane->hold_until(now.steady + 1h);
  EXPECT_EQ(reason(), WaitReason::rate);
}

TEST_F(LaneWaitsTest, TheInFlightCapOfAnEndpoint) {
  const auto lane = make_lane([](LaneConfig& config) { config.endpoint.max_in_flight = 1; });
  fill(lane, 2);
  lane->start(Turn::first, now);
  EXPECT_EQ(reason(), WaitReason::in_flight_cap);
}

TEST_F(LaneWaitsTest, TheLimitsOfATenant) {
  const auto lane = make_lane();
  fill(lane, 3);
  chooser.set_limits(*lane->tenant(), {.max_in_flight = 1, .rate_per_second = {}}, now.steady);
  chooser.add(lane, Turn::first);
  std::vector<LanePtr> not_ready;
  ASSERT_TRUE(chooser.next(now, not_ready));
  EXPECT_EQ(reason(), WaitReason::in_flight_cap);
  chooser.set_limits(*lane->tenant(), {.max_in_flight = {}, .rate_per_second = 0.001}, now.steady);
  ASSERT_TRUE(chooser.next(now, not_ready));
  EXPECT_EQ(reason(), WaitReason::rate);
}

TEST_F(LaneWaitsTest, TheSlotsOfTheShardAndTheShareOfRetries) {
  const auto lane = make_lane([](LaneConfig& config) { config.endpoint.max_in_flight = 100; });
  fill(lane, 2, Turn::retry);
  chooser.add(lane, Turn::retry);
  std::vector<LanePtr> not_ready;
  ASSERT_TRUE(chooser.next(now, not_ready));
  EXPECT_EQ(reason(), WaitReason::in_flight_cap);
  fill(lane, 1);
  reason();
  const auto found = sample();
  ASSERT_EQ(found.size(), 1u) << "first attempts do not wait for it";
  EXPECT_TRUE(found.front().is_retry);
}

TEST_F(LaneWaitsTest, TheRatesOfTheBrakes) {
  const auto lane = make_lane();
  fill(lane, 2, Turn::retry);
  chooser.set_brakes({.retry_rate_per_second = 0.001}, now.steady);
  chooser.add(lane, Turn::retry);
  std::vector<LanePtr> not_ready;
  ASSERT_TRUE(chooser.next(now, not_ready));
  EXPECT_EQ(reason(), WaitReason::brake);
  chooser.set_brakes({.is_paused = true}, now.steady);
  EXPECT_EQ(reason(), Reason{}) << "the database knows this";
}

TEST_F(LaneWaitsTest, WhatTheDatabaseKnowsIsNotReported) {
  const auto broken = make_lane(), later = make_lane(),
             strict =
                 make_lane([](LaneConfig& config) { config.endpoint.ordering = model::Ordering::strict; }),
             paused = make_lane([](LaneConfig& config) { config.mode = LaneConfig::Mode::hold; });
  for (const auto& lane : {broken, strict, paused}) fill(lane, 2);
  broken->breaker().on_transient_failure({.now = now.steady});
  strict->start(Turn::first, now);
  pass(1h);
  fill(later, 1);
  pass(-1h);
  EXPECT_EQ(reason(), Reason{});
}

TEST_F(LaneWaitsTest, OnlyWhatLastedASecondIsReportedWithItsLease) {
  const auto lane = make_lane([](LaneConfig& config) { config.endpoint.max_in_flight = 1; });
  fill(lane, 2);
  const QueueRow first = lane->start(Turn::first, now);
  EXPECT_TRUE(sample().empty());
  EXPECT_TRUE(sample().empty()) << "its rows are due, but not for a second";
  pass(1s);
  EXPECT_TRUE(sample().empty()) << "found once";
  pass(1s);
  const std::vector<LaneWait> expected = {{lane->endpoint, false, 3, 7, WaitReason::in_flight_cap}};
  EXPECT_EQ(sample(), expected);
  lane->finished_exchange();
  lane->release(first.id());
  EXPECT_EQ(sample(), expected) << "for a moment there is room, until the next one starts";
  EXPECT_TRUE(sample().empty());
}

}  // namespace
}  // namespace postrider::delivery
