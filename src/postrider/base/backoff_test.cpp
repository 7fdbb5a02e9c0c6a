#include "postrider/base/backoff.hpp"

#include <gtest/gtest.h>

namespace postrider::base {
namespace {

using namespace std::chrono_literals;

TEST(Backoff, DoublesUpToTheMaximumWithJitter) {
  Backoff backoff({.min = 100ms, .max = 350ms});
  for (const auto pause : {100ms, 200ms, 350ms, 350ms}) {
    const auto next = backoff.next();
    EXPECT_GE(next, pause / 2);
    EXPECT_LE(next, pause);
  }
  EXPECT_TRUE(backoff.is_at_max());
}

TEST(Backoff, StartsAgainAfterASuccess) {
  Backoff backoff({.min = 100ms, .max = 10s});
  for (int i = 0; i < 20; ++i) (void)backoff.next();
  backoff.reset();
  EXPECT_FALSE(backoff.is_at_max());
  EXPECT_LE(backoff.next(), 100ms);
}

}  // namespace
}  // namespace postrider::base
