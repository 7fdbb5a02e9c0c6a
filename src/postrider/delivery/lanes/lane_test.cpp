#include "postrider/delivery/lanes/lane.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace postrider::delivery {
namespace {

using namespace std::chrono_literals;
using Wait = Lane::Wait;

struct LaneTest : testing::Test {
  LaneTest() : lane({}, {0, 1}, totals) { configure(); }

  void configure(const std::function<void(LaneConfig&)>& edit = {}) {
    auto config = std::make_shared<LaneConfig>();
    config->mode = LaneConfig::Mode::send;
    config->endpoint.max_in_flight = 2;
    if (edit) edit(*config);
    lane.configure(std::move(config), now);
  }
  QueueRow row(uint8_t n, base::Timestamp due = base::Timestamp(1000s), bool has_body = true) {
    QueueRow made;
    made.key.due_at = due;
    made.key.id.uuid.bytes[15] = n;
    if (has_body) made.event = std::make_shared<model::EventContent>();
    return made;
  }
  void put(QueueRow made, Turn turn = Turn::first) { lane.buffer(turn).put_back(std::move(made)); }
  Wait wait(Turn turn = Turn::first) { return lane.readiness(turn, now).wait; }
  void fail(int times) {
    for (int i = 0; i < times; ++i) lane.breaker().on_transient_failure({.now = now.steady});
  }

  BufferTotals totals;
  Now now{base::SteadyTime(500s), base::Timestamp(1000s)};
  Lane lane;
};

TEST_F(LaneTest, WithoutRowsThereIsNothingToWaitFor) {
  EXPECT_EQ(wait(), Wait::nothing);
}

TEST_F(LaneTest, ADueRowWithItsBodyIsReady) {
  put(row(1));
  EXPECT_EQ(wait(), Wait::ready);
  EXPECT_EQ(wait(Turn::retry), Wait::nothing);
}

TEST_F(LaneTest, ARowIsReadyWhenItIsDueByTheDatabasesClock) {
  put(row(1, base::Timestamp(1007s)));
  const auto readiness = lane.readiness(Turn::first, now);
  EXPECT_EQ(readiness.wait, Wait::time);
  EXPECT_EQ(readiness.until, now.steady + 7s);
}

TEST_F(LaneTest, ABodyThatIsNotInMemoryIsAskedForOnceTheRowIsDue) {
  put(row(1, base::Timestamp(1001s), false));
  EXPECT_EQ(wait(), Wait::time);
  now.db += 1s;
  EXPECT_EQ(wait(), Wait::body);
}

TEST_F(LaneTest, AFullLaneWaitsForAnAnswer) {
  for (uint8_t n = 1; n <= 3; ++n) put(row(n));
  const QueueRow first = lane.start(Turn::first, now);
  lane.start(Turn::first, now);
  EXPECT_EQ(wait(), Wait::event);
  lane.finished_exchange();
  EXPECT_EQ(wait(), Wait::ready) << "a settle that is still under way holds no slot";
  EXPECT_TRUE(lane.is_known(first.id()));
}

TEST_F(LaneTest, OnlyALaneThatSendsIsReady) {
  put(row(1));
  configure([](LaneConfig& config) { config.mode = LaneConfig::Mode::hold; });
  EXPECT_EQ(wait(), Wait::event);
  configure();
  lane.set_draining(true);
  EXPECT_EQ(wait(), Wait::event);
  lane.set_draining(false);
  lane.lose();
  EXPECT_EQ(wait(), Wait::event);
}

TEST_F(LaneTest, RetryAfterHoldsBothTurns) {
  put(row(1));
  put(row(2), Turn::retry);
  lane.hold_until(now.steady + 3s);
  for (const Turn turn : {Turn::first, Turn::retry}) {
    const auto readiness = lane.readiness(turn, now);
    EXPECT_EQ(readiness.wait, Wait::time);
    EXPECT_EQ(readiness.until, now.steady + 3s);
  }
}

TEST_F(LaneTest, TheRateIsWaitedFor) {
  configure([](LaneConfig& config) { config.endpoint.rate_per_second = 1; });
  put(row(1));
  put(row(2));
  lane.start(Turn::first, now);
  const auto readiness = lane.readiness(Turn::first, now);
  EXPECT_EQ(readiness.wait, Wait::time);
  EXPECT_EQ(readiness.until, now.steady + 1s);
}

TEST_F(LaneTest, AnOpenBreakerLetsOneProbeThroughAndRotates) {
  for (uint8_t n = 1; n <= 3; ++n) put(row(n));
  fail(5);
  EXPECT_EQ(wait(), Wait::time);
  std::vector<int> probed;
  for (int i = 0; i < 4; ++i) {
    now.steady = lane.breaker().next_probe_at();
    EXPECT_TRUE(lane.readiness(Turn::first, now).is_probe);
    QueueRow probe = lane.start(Turn::first, now);
    EXPECT_EQ(wait(), Wait::event) << "one probe at a time";
    probed.push_back(probe.id().uuid.bytes[15]);
    lane.finished_exchange();
    lane.release(probe.id());
    lane.breaker().on_transient_failure({.now = now.steady, .was_probe = true});
    put(std::move(probe));
  }
  EXPECT_EQ(probed, (std::vector<int>{1, 2, 3, 1}));
}

TEST_F(LaneTest, AStrictLaneSendsTheNextOnlyWhenTheLastIsSettled) {
  configure([](LaneConfig& config) { config.endpoint.ordering = model::Ordering::strict; });
  put(row(1));
  put(row(2));
  const QueueRow first = lane.start(Turn::first, now);
  lane.finished_exchange();
  EXPECT_EQ(wait(), Wait::event);
  lane.release(first.id());
  EXPECT_EQ(wait(), Wait::ready);
}

TEST_F(LaneTest, AStrictLaneEndsItsOldRetriesFirst) {
  put(row(9, base::Timestamp(1005s)), Turn::retry);
  configure([](LaneConfig& config) { config.endpoint.ordering = model::Ordering::strict; });
  put(row(1));
  EXPECT_EQ(wait(Turn::first), Wait::event);
  EXPECT_EQ(wait(Turn::retry), Wait::time);
  now.db += 5s;
  EXPECT_EQ(wait(Turn::retry), Wait::ready);
}

TEST_F(LaneTest, AnotherOrderingReadsTheRowsAgain) {
  put(row(1));
  configure([](LaneConfig& config) { config.endpoint.ordering = model::Ordering::strict; });
  EXPECT_EQ(lane.rows(), 0u);
  EXPECT_TRUE(lane.buffer(Turn::first).may_have_more());
}

TEST_F(LaneTest, ANewUrlOrAResumeForgetsTheBreakerAndTheHold) {
  put(row(1));
  fail(5);
  lane.hold_until(now.steady + 1h);
  configure([](LaneConfig& config) { config.url = *http::parse_url("https://elsewhere.example/"); });
  EXPECT_EQ(wait(), Wait::ready);
}

}  // namespace
}  // namespace postrider::delivery
