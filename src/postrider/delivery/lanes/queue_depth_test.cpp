#include "postrider/delivery/lanes/queue_depth.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace postrider::delivery {
namespace {

using namespace std::chrono_literals;

struct QueueDepthTest : testing::Test {
  QueueDepthTest() : lane({}, {0, 1}, totals) { configure(); }

  void configure(const std::function<void(LaneConfig&)>& edit = {}) {
    auto config = std::make_shared<LaneConfig>();
    config->mode = LaneConfig::Mode::send;
    if (edit) edit(*config);
    lane.configure(std::move(config), now);
  }
  void put(uint8_t n, std::chrono::seconds due, Turn turn = Turn::first) {
    QueueRow row;
    row.key.due_at = base::Timestamp(1000s) + due;
    row.key.id.uuid.bytes[15] = n;
    lane.buffer(turn).put_back(std::move(row));
  }
  QueueDepth depth(bool is_all_paused = false) const {
    QueueDepth sum;
    sum.add(lane, now.db, is_all_paused);
    return sum;
  }

  BufferTotals totals;
  Now now{base::SteadyTime(500s), base::Timestamp(1000s)};
  Lane lane;
};

TEST_F(QueueDepthTest, RowsThatAreDueArePendingAndLaterOnesAreRetrying) {
  put(1, -7s);
  put(2, 0s);
  put(3, 1s, Turn::retry);
  put(4, -9s, Turn::retry);
  EXPECT_EQ(depth().pending, 3u);
  EXPECT_EQ(depth().retrying, 1u);
  EXPECT_EQ(depth().oldest_pending_seconds, 9);
}

TEST_F(QueueDepthTest, AnOpenBreakerDoesNotMakeTheQueueLookStuck) {
  put(1, -60s);
  put(2, 60s, Turn::retry);
  for (int i = 0; i < 5; ++i) lane.breaker().on_transient_failure({.now = now.steady});
  EXPECT_EQ(depth().breaker, 1u);
  EXPECT_EQ(depth().retrying, 1u);
  EXPECT_EQ(depth().pending, 0u);
  EXPECT_EQ(depth().oldest_pending_seconds, 0);
}

TEST_F(QueueDepthTest, NeitherDoesAPause) {
  put(1, -60s);
  EXPECT_EQ(depth(true).paused, 1u);
  configure([](LaneConfig& config) { config.mode = LaneConfig::Mode::hold; });
  EXPECT_EQ(depth().paused, 1u);
  EXPECT_EQ(depth().pending, 0u);
  EXPECT_EQ(depth().oldest_pending_seconds, 0);
}

TEST_F(QueueDepthTest, NorAnEndpointThatCannotSign) {
  put(1, -60s);
  configure([](LaneConfig& config) {
    config.mode = LaneConfig::Mode::hold;
    config.why_unsigned = "its secret cannot be read";
  });
  EXPECT_EQ(depth().held, 1u);
  EXPECT_EQ(depth().lanes_held, 1u);
  EXPECT_EQ(depth().paused, 0u);
}

TEST_F(QueueDepthTest, AStrictLaneWaitsForItsHead) {
  configure([](LaneConfig& config) { config.endpoint.ordering = model::Ordering::strict; });
  put(1, 5s);
  put(2, -5s);
  const QueueDepth strict = depth();
  EXPECT_EQ(strict.pending + strict.retrying, 2u);
  QueueDepth twice = strict;
  twice += strict;
  EXPECT_EQ(twice.pending + twice.retrying, 4u);
}

}  // namespace
}  // namespace postrider::delivery
