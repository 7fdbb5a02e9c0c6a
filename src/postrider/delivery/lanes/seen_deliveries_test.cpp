#include "postrider/delivery/lanes/seen_deliveries.hpp"

#include <gtest/gtest.h>

namespace postrider::delivery {
namespace {

using namespace std::chrono_literals;

struct SeenDeliveriesTest : testing::Test {
  QueueRow row(uint8_t n) {
    QueueRow made;
    made.key.id.uuid.bytes[15] = n;
    made.created_at = now.db;
    return made;
  }

  Now now{base::SteadyTime(500s), base::Timestamp(1000s)};
  SeenDeliveries seen;
};

TEST_F(SeenDeliveriesTest, AFetchedFirstAttemptIsRememberedForAWhile) {
  seen.fetched(row(1), now);
  EXPECT_TRUE(seen.was_fetched(row(1).id()));
  now.steady += SeenDeliveries::kFetchedKept + 1s;
  now.db += SeenDeliveries::kFetchedKept + 1s;
  seen.fetched(row(2), now);
  EXPECT_FALSE(seen.was_fetched(row(1).id()));
  EXPECT_TRUE(seen.was_fetched(row(2).id()));
}

TEST_F(SeenDeliveriesTest, RowsWithoutAHandOverAreNotRemembered) {
  QueueRow retried = row(1), old = row(2);
  retried.attempts = 1;
  old.created_at -= SeenDeliveries::kFetchedKept + 1s;
  seen.fetched(retried, now);
  seen.fetched(old, now);
  EXPECT_FALSE(seen.was_fetched(retried.id()));
  EXPECT_FALSE(seen.was_fetched(old.id()));
  EXPECT_TRUE(SeenDeliveries::is_too_old(old, now.db));
}

TEST_F(SeenDeliveriesTest, ACanceledDeliveryIsRememberedLongerThanAFetchTakes) {
  seen.canceled(row(1).id(), now.steady);
  seen.forget_canceled(now.steady + SeenDeliveries::kCanceledKept);
  EXPECT_TRUE(seen.was_canceled(row(1).id()));
  seen.forget_canceled(now.steady + SeenDeliveries::kCanceledKept + 1s);
  EXPECT_FALSE(seen.was_canceled(row(1).id()));
}

}  // namespace
}  // namespace postrider::delivery
