#include "postrider/delivery/lanes/memory_budget.hpp"

#include <gtest/gtest.h>

namespace postrider::delivery {
namespace {

struct MemoryBudgetTest : testing::Test {
  static QueueRow row(uint8_t n, size_t bytes = 0) {
    QueueRow made;
    made.key.id.uuid.bytes[15] = n;
    if (bytes > 0) {
      auto event = std::make_shared<model::EventContent>();
      event->body = std::string(bytes, 'x');
      made.event = std::move(event);
    }
    return made;
  }
  static void fill(RowBuffer& buffer, int rows, size_t bytes = 0) {
    for (int i = 0; i < rows; ++i) buffer.put_back(row(static_cast<uint8_t>(i), bytes));
  }

  MemoryBudget budget{{.lane_rows_max = 20, .lane_bytes_max = 1000, .rows_max = 50, .body_bytes_max = 2000}};
  RowBuffer buffer{budget.totals()}, other{budget.totals()};
};

TEST_F(MemoryBudgetTest, AnEmptyBufferAlwaysHasRoomForARow) {
  fill(other, 60, 50);
  EXPECT_TRUE(budget.has_room(buffer));
  EXPECT_EQ(budget.room_for_rows(buffer), 2u);
  EXPECT_FALSE(budget.has_room(other));
}

TEST_F(MemoryBudgetTest, ALaneIsLimitedByRowsAndByBytes) {
  fill(buffer, 19);
  EXPECT_TRUE(budget.has_room(buffer));
  buffer.put_back(row(100));
  EXPECT_FALSE(budget.has_room(buffer));
  fill(other, 1, 1000);
  EXPECT_FALSE(budget.has_room(other));
  EXPECT_FALSE(budget.has_room_for_bodies(other));
}

TEST_F(MemoryBudgetTest, AllLanesTogetherAreLimited) {
  fill(other, 49);
  fill(buffer, 1);
  EXPECT_FALSE(budget.has_room(buffer));
}

TEST_F(MemoryBudgetTest, AFetchForOneRowIsNotWorthIt) {
  fill(buffer, 19);
  EXPECT_EQ(budget.room_for_rows(buffer), 0u);
}

TEST_F(MemoryBudgetTest, ABufferIsRefilledWhenItIsLow) {
  fill(buffer, 6);
  buffer.expect_more_from(row(200).key);
  EXPECT_FALSE(budget.needs_rows(buffer, false));
  buffer.take();
  EXPECT_TRUE(budget.needs_rows(buffer, false));
  EXPECT_FALSE(budget.needs_rows(buffer, true)) << "it cannot send soon";
  buffer.begin_fetch();
  EXPECT_FALSE(budget.needs_rows(buffer, false)) << "a fetch is running";
}

TEST_F(MemoryBudgetTest, RowsThatMayHaveToGoFirstAreFetchedEvenIntoAFullBuffer) {
  fill(buffer, 20);
  buffer.expect_more();
  EXPECT_TRUE(budget.needs_rows(buffer, true));
  EXPECT_GE(budget.make_room(buffer), 2u);
}

TEST_F(MemoryBudgetTest, ARestingLaneGivesItsBodiesBackAndItsRowsOnlyWhenTheyAreShort) {
  fill(buffer, 10, 10);
  budget.rest(buffer);
  EXPECT_EQ(buffer.body_bytes(), 0u);
  EXPECT_EQ(buffer.size(), 10u);
  fill(other, 20);
  budget.rest(buffer);
  EXPECT_EQ(buffer.size(), MemoryBudget::kRowsResting);
}

}  // namespace
}  // namespace postrider::delivery
