#include "postrider/delivery/lanes/delivery_control.hpp"

#include <gtest/gtest.h>

namespace postrider::delivery {
namespace {

struct DeliveryControlTest : testing::Test, LaneEvents {
  DeliveryControlTest() { table.add_bucket(1, 7); }
  void changed(const LanePtr&) override {}
  void became_idle(const Lane&) override {}
  static QueueRow row() {
    QueueRow made;
    made.key.id.uuid.bytes[15] = 9;
    return made;
  }

  model::EndpointId endpoint;
  runtime::Loop loop;
  telemetry::Metrics all;
  Metrics metrics{all};
  BufferTotals totals;
  Chooser chooser{{}};
  LaneTable table{loop, metrics, {.buckets_total = 4, .breaker = {}}, totals, chooser, *this};
  SeenDeliveries seen;
  DeliveryControl control{table, seen, *this};
};

TEST_F(DeliveryControlTest, ACanceledRowIsNotTakenInLaterThoughItsLaneWasNotFetching) {
  const LanePtr lane = table.get_or_create(endpoint, 1);
  control.cancel(endpoint, row().id());
  EXPECT_TRUE(seen.was_canceled(row().id())) << "a handoff or a discovery may bring it now";
}

TEST_F(DeliveryControlTest, ACanceledRowIsNotTakenInLaterThoughThereWasNoLane) {
  control.cancel(endpoint, row().id());
  EXPECT_TRUE(seen.was_canceled(row().id()));
}

TEST_F(DeliveryControlTest, AnExpeditedRowIsReadAgainWhenTheFetchOfItsLaneHasEnded) {
  const LanePtr lane = table.get_or_create(endpoint, 1);
  RowBuffer& buffer = lane->buffer(Turn::first);
  buffer.begin_fetch();
  control.expedite(endpoint, row().id());
  control.changed(*lane);
  buffer.fetched({row()}, true, [](model::DeliveryId) { return false; });  // with its old time
  ASSERT_EQ(buffer.size(), 1u);
  control.changed(*lane);
  EXPECT_EQ(buffer.size(), 0u);
  EXPECT_TRUE(buffer.may_have_more());
}

}  // namespace
}  // namespace postrider::delivery
