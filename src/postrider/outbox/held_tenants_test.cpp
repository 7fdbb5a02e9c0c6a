#include "postrider/outbox/held_tenants.hpp"

#include <gtest/gtest.h>

namespace postrider::outbox {
namespace {

using namespace std::chrono_literals;

constexpr base::SteadyTime kNow = base::SteadyTime(1'000s);

TEST(HeldTenants, ATenantHasItsTurnAfterAPauseFromTheFirstRowThatWaits) {
  HeldTenants held(500);
  ASSERT_TRUE(held.hold("a", {7, 3}, kNow));
  ASSERT_TRUE(held.hold("a", {9, 1}, kNow));
  EXPECT_FALSE(held.next(kNow));
  ASSERT_TRUE(held.due_at());
  const auto turn = held.next(*held.due_at());
  ASSERT_TRUE(turn);
  EXPECT_EQ(turn->tenant, "a");
  EXPECT_EQ(turn->from, (Position{7, 3}));
}

TEST(HeldTenants, AWindowThatLeavesItsRowsOutMovesItsFirstRowBack) {
  HeldTenants held(500);
  held.hold("a", {7, 3}, kNow);
  held.skip_from({8, 0});
  EXPECT_EQ(held.next(kNow + 1s)->from, (Position{7, 3}));
  held.skip_from({2, 0});
  EXPECT_EQ(held.next(kNow + 1s)->from, (Position{2, 0}));
}

TEST(HeldTenants, AsksForAboutAsMuchAsWasTaken) {
  HeldTenants held(100);
  held.hold("a", {7, 3}, kNow);
  EXPECT_EQ(held.next(kNow + 1s)->rows, 10);
  held.moved("a", {.published = 30, .next = {8, 0}, .is_throttled = true}, kNow);
  EXPECT_FALSE(held.next(kNow));
  EXPECT_EQ(held.next(kNow + 1s)->rows, 60);
  held.moved("a", {.published = 60, .next = {9, 0}, .is_throttled = false}, kNow);
  EXPECT_EQ(held.next(kNow)->rows, 100);
  EXPECT_EQ(held.next(kNow)->from, (Position{9, 0}));
  held.moved("a", {.published = 0, .next = {9, 0}, .is_throttled = true}, kNow);
  EXPECT_EQ(held.next(kNow + 1s)->rows, 10);
}

TEST(HeldTenants, TheOneThatHasWaitedLongestIsNextAndThereIsALimit) {
  HeldTenants held(100);
  held.hold("b", {1, 1}, kNow);
  held.hold("a", {1, 2}, kNow + 10s);
  EXPECT_EQ(held.next(kNow + 20s)->tenant, "b");
  for (size_t i = 2; i < HeldTenants::kMax; ++i) ASSERT_TRUE(held.hold(std::to_string(i), {}, kNow));
  EXPECT_FALSE(held.hold("one more", {}, kNow));
  EXPECT_TRUE(held.hold("a", {}, kNow));
  held.release("b");
  EXPECT_TRUE(held.hold("one more", {}, kNow));
  EXPECT_EQ(held.names().size(), HeldTenants::kMax);
}

}  // namespace
}  // namespace postrider::outbox
