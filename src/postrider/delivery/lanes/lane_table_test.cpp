#include "postrider/delivery/lanes/lane_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postrider::delivery {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

struct LaneTableTest : testing::Test, LaneEvents {
  void changed(const LanePtr& lane) override {
    reported.push_back(lane->endpoint);
    if (reported.size() == wanted) loop.stop();
  }
  void became_idle(const Lane&) override {}
  static model::EndpointId endpoint(uint8_t n) {
    model::EndpointId id;
    id.uuid.bytes[15] = n;
    return id;
  }
  void run_until_reported(size_t count) {
    wanted = count;
    loop.run();
  }

  runtime::Loop loop;
  telemetry::Metrics all;
  Metrics metrics{all};
  BufferTotals totals;
  Chooser chooser{{}};
  LaneTable table{loop, metrics, {.buckets_total = 4, .breaker = {}}, totals, chooser, *this};
  std::vector<model::EndpointId> reported;
  size_t wanted = 0;
};

TEST_F(LaneTableTest, ALaneIsCreatedOnceAndBelongsToItsBucket) {
  table.add_bucket(1, 7);
  const LanePtr lane = table.get_or_create(endpoint(1), 1);
  EXPECT_EQ(table.get_or_create(endpoint(1), 1), lane);
  EXPECT_EQ(lane->epoch, 7);
  EXPECT_EQ(table.find(endpoint(2)), nullptr);
  EXPECT_THAT(table.lanes_of(1), ElementsAre(lane));
  EXPECT_EQ(metrics.lanes.value(), 1);
}

TEST_F(LaneTableTest, ALaneOfABucketThatIsBeingScannedExpectsRowsInTheTable) {
  table.add_bucket(1, 7);
  EXPECT_TRUE(table.get_or_create(endpoint(1), 1)->has_work());
  table.find_bucket(1)->is_scanning = false;
  EXPECT_FALSE(table.get_or_create(endpoint(2), 1)->has_work());
}

TEST_F(LaneTableTest, ABucketThatIsRemovedTakesItsLanesWithIt) {
  table.add_bucket(1, 7);
  table.add_bucket(2, 7);
  const LanePtr lost = table.get_or_create(endpoint(1), 1), kept = table.get_or_create(endpoint(2), 2);
  table.wake_at(lost, base::BootClock::now() + 1h);
  table.remove_bucket(1);
  EXPECT_TRUE(lost->is_gone());
  EXPECT_FALSE(kept->is_gone());
  EXPECT_EQ(table.timers(), 0u);
  EXPECT_FALSE(table.has_bucket(1));
}

TEST_F(LaneTableTest, ABucketThatIsTakenAgainIsAnotherOne) {
  table.add_bucket(1, 7);
  const LanePtr lane = table.get_or_create(endpoint(1), 1);
  table.add_bucket(1, 8);
  EXPECT_TRUE(lane->is_gone());
  EXPECT_FALSE(table.has_bucket(1, 7));
  EXPECT_TRUE(table.has_bucket(1, 8));
}

TEST_F(LaneTableTest, LanesAreWokenInOrderOfTheirTimesAndOncePerLane) {
  table.add_bucket(1, 7);
  const LanePtr first = table.get_or_create(endpoint(1), 1), second = table.get_or_create(endpoint(2), 1);
  const auto start = base::BootClock::now();
  table.wake_at(first, start + 20ms);
  table.wake_at(second, start + 10ms);
  table.wake_at(second, start + 1h);
  EXPECT_EQ(table.timers(), 2u);
  run_until_reported(2);
  EXPECT_THAT(reported, ElementsAre(endpoint(2), endpoint(1)));
  EXPECT_EQ(table.timers(), 0u);
}

TEST_F(LaneTableTest, OnlyLanesThatHaveHadNoWorkForAMinuteAreIdle) {
  table.add_bucket(1, 7);
  table.find_bucket(1)->is_scanning = false;
  const LanePtr lane = table.get_or_create(endpoint(1), 1);
  const auto start = base::BootClock::now();
  table.note_work(*lane, start);
  EXPECT_THAT(table.idle_lanes(start + 30s), IsEmpty());
  EXPECT_THAT(table.idle_lanes(start + 61s), ElementsAre(lane));
  lane->hold_until(start + 2min);
  EXPECT_THAT(table.idle_lanes(start + 61s), IsEmpty()) << "a hold must not be forgotten";
}

}  // namespace
}  // namespace postrider::delivery
