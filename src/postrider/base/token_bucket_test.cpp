#include "postrider/base/token_bucket.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace postrider::base {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

const SteadyTime start = SteadyTime(seconds(1'000));

TEST(TokenBucket, AllowsABurstOfOneSecondAndThenTheRate) {
  TokenBucket bucket(3, start);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bucket.try_take(start));
  EXPECT_FALSE(bucket.try_take(start));
  const SteadyTime ready = bucket.ready_at(start);
  EXPECT_GT(ready, start + milliseconds(333));
  EXPECT_LT(ready, start + milliseconds(334));
  EXPECT_TRUE(bucket.try_take(ready));
  EXPECT_FALSE(bucket.try_take(ready));
}

TEST(TokenBucket, RatesBelowOneStillSend) {
  TokenBucket bucket(0.1, start);
  EXPECT_TRUE(bucket.try_take(start));
  EXPECT_EQ(bucket.ready_at(start), start + seconds(10));
  EXPECT_FALSE(bucket.try_take(start + milliseconds(9'999)));
  EXPECT_TRUE(bucket.try_take(start + seconds(10)));
}

TEST(TokenBucket, HoweverSmallARateIsTheNextTokenIsInTheFuture) {
  for (const double rate : {1e-9, 1e-11, 1e-300, 5e-324, 0.0, -1.0, std::nan("")}) {
    TokenBucket bucket(rate, start);
    EXPECT_TRUE(bucket.try_take(start)) << rate;
    EXPECT_FALSE(bucket.try_take(start)) << rate;
    EXPECT_GT(bucket.ready_at(start), start + minutes(60)) << rate;
    bucket.set_rate(1, start);
    bucket.set_rate(rate, start);
    EXPECT_GT(bucket.ready_at(start), start + minutes(60)) << rate;
  }
}

TEST(TokenBucket, NeverPassesItsRateOverALongTime) {
  TokenBucket bucket(7.3, start);
  int taken = 0;
  SteadyTime now = start;
  while (now < start + seconds(1'000)) {
    if (bucket.try_take(now)) ++taken;
    now = std::max(now + milliseconds(1), bucket.ready_at(now));
  }
  EXPECT_GE(taken, 7'300 - 10);
  EXPECT_LE(taken, 7'300 + 8);
}

TEST(TokenBucket, AnIdleHourSavesNoMoreThanOneBurst) {
  TokenBucket bucket(2, start);
  int taken = 0;
  while (bucket.try_take(start + minutes(60))) ++taken;
  EXPECT_EQ(taken, 2);
}

TEST(TokenBucket, AClockThatStandsStillOrGoesBackGivesNothing) {
  TokenBucket bucket(1, start);
  EXPECT_TRUE(bucket.try_take(start));
  EXPECT_FALSE(bucket.try_take(start - seconds(100)));
  EXPECT_FALSE(bucket.try_take(start));
  bucket.put_back();
  EXPECT_TRUE(bucket.try_take(start));
}

TEST(TokenBucket, AChangedRateGrantsNoBurst) {
  TokenBucket bucket(1, start);
  EXPECT_TRUE(bucket.try_take(start));
  bucket.set_rate(100, start);
  EXPECT_FALSE(bucket.try_take(start));
  EXPECT_TRUE(bucket.try_take(start + milliseconds(10)));
}

}  // namespace
}  // namespace postrider::base
