#include "postrider/delivery/lanes/bucket_reader.hpp"

#include <gtest/gtest.h>

namespace postrider::delivery {
namespace {

TEST(BucketReaderTest, ARoundOfThePatrolTakesAsLongWithManyBuckets) {
  EXPECT_EQ(patrolled_at_once(0), 0u);
  EXPECT_EQ(patrolled_at_once(1), 1u);
  EXPECT_EQ(patrolled_at_once(64), 1u);
  EXPECT_EQ(patrolled_at_once(65), 2u);
  EXPECT_EQ(patrolled_at_once(256), 4u);
  EXPECT_EQ(patrolled_at_once(4096), 64u);
}

}  // namespace
}  // namespace postrider::delivery
