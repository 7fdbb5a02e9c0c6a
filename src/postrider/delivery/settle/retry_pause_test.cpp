#include "postrider/delivery/settle/retry_pause.hpp"

#include <gtest/gtest.h>

namespace postrider::delivery {
namespace {

using namespace std::chrono_literals;

TEST(RetryPause, DoublesUpToItsLimitAndStartsAgainAfterASuccess) {
  RetryPause pause({.first = 200ms, .longest = 1s});
  EXPECT_EQ(pause.after_failure(), 200ms);
  EXPECT_EQ(pause.after_failure(), 400ms);
  EXPECT_EQ(pause.after_failure(), 800ms);
  EXPECT_EQ(pause.after_failure(), 1s);
  EXPECT_EQ(pause.after_failure(), 1s);
  pause.succeeded();
  EXPECT_EQ(pause.after_failure(), 200ms);
}

}  // namespace
}  // namespace postrider::delivery
