#include "postrider/delivery/stall_watch.hpp"

#include <gtest/gtest.h>

namespace postrider::delivery {
namespace {

using namespace std::chrono_literals;

struct StallWatchTest : testing::Test {
  runtime::Loop loop;
  StallWatch watch{loop};
  base::SteadyTime start = base::BootClock::now();
};

TEST_F(StallWatchTest, LooksInQuickSuccessionAreNoStall) {
  watch.look(start + 900ms);
  watch.look(start + 1800ms);
  EXPECT_EQ(watch.stalls(), 0u);
  EXPECT_EQ(watch.woken_at(), base::SteadyTime{});
}

TEST_F(StallWatchTest, AGapIsAStallAndEndsWhenItIsNoticed) {
  watch.look(start + 5s);
  EXPECT_EQ(watch.stalls(), 1u);
  EXPECT_EQ(watch.woken_at(), start + 5s);
  watch.look(start + 5100ms);
  EXPECT_EQ(watch.stalls(), 1u);
  EXPECT_EQ(watch.woken_at(), start + 5s);
}

TEST_F(StallWatchTest, AnAttemptSeesAStallThatBeganAfterIt) {
  const uint64_t before = watch.stalls();
  watch.look(start + 5s);
  EXPECT_TRUE(watch.has_stalled_since(before));
  EXPECT_FALSE(watch.has_stalled_since(watch.stalls()));
}

}  // namespace
}  // namespace postrider::delivery
