#include "postrider/delivery/lanes/row_buffer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace postrider::delivery {
namespace {

using testing::ElementsAre;

model::DeliveryId id(uint8_t n) {
  model::DeliveryId delivery;
  delivery.uuid.bytes[15] = n;
  return delivery;
}

QueueRow row(uint8_t n, int64_t position = 0) {
  QueueRow made;
  made.key = {position, base::Timestamp(std::chrono::seconds(n)), id(n)};
  return made;
}

std::vector<QueueRow> rows(std::initializer_list<uint8_t> numbers) {
  std::vector<QueueRow> made;
  for (const uint8_t n : numbers) made.push_back(row(n));
  return made;
}

std::vector<int> numbers(const RowBuffer& buffer) {
  std::vector<int> seen;
  for (const QueueRow& each : buffer.rows()) seen.push_back(each.key.id.uuid.bytes[15]);
  return seen;
}

const auto kNothingKnown = [](model::DeliveryId) { return false; };

TEST(RowBuffer, TakesCommittedRowsDirectlyWhileEverythingIsInMemory) {
  BufferTotals totals;
  RowBuffer buffer(totals);
  EXPECT_TRUE(buffer.offer(row(1), true));
  EXPECT_TRUE(buffer.offer(row(2), true));
  EXPECT_FALSE(buffer.may_have_more());
  EXPECT_THAT(numbers(buffer), ElementsAre(1, 2));
}

TEST(RowBuffer, LeavesRowsInTheTableOnceOneDidNotFit) {
  BufferTotals totals;
  RowBuffer buffer(totals);
  EXPECT_TRUE(buffer.offer(row(1), true));
  EXPECT_FALSE(buffer.offer(row(2), false));
  EXPECT_FALSE(buffer.offer(row(3), true)) << "3 would overtake 2";
  EXPECT_TRUE(buffer.may_have_more());
  EXPECT_EQ(buffer.begin_fetch().id, id(2)) << "the fetch starts at the first row left behind";
}

TEST(RowBuffer, AFetchThatReachedTheEndMakesItCompleteAgain) {
  BufferTotals totals;
  RowBuffer buffer(totals);
  buffer.expect_more();
  buffer.begin_fetch();
  EXPECT_EQ(buffer.fetched(rows({1, 2}), true, kNothingKnown), 2u);
  EXPECT_FALSE(buffer.may_have_more());
  EXPECT_TRUE(buffer.offer(row(3), true));
  EXPECT_THAT(numbers(buffer), ElementsAre(1, 2, 3));
}

TEST(RowBuffer, ACommitDuringAFetchIsNotLost) {
  BufferTotals totals;
  RowBuffer buffer(totals);
  buffer.expect_more();
  buffer.begin_fetch();
  EXPECT_FALSE(buffer.offer(row(9), true));
  buffer.fetched(rows({1}), true, kNothingKnown);
  EXPECT_TRUE(buffer.may_have_more()) << "the fetch may not have seen row 9";
  EXPECT_EQ(buffer.begin_fetch().id, id(1));
}

TEST(RowBuffer, ALateCommitBeforeTheCursorIsTaken) {
  BufferTotals totals;
  RowBuffer buffer(totals);
  buffer.expect_more();
  buffer.begin_fetch();
  buffer.fetched(rows({5, 6}), false, kNothingKnown);
  EXPECT_TRUE(buffer.offer(row(2), true)) << "everything before 6 is in memory";
  EXPECT_FALSE(buffer.offer(row(7), true));
  EXPECT_THAT(numbers(buffer), ElementsAre(2, 5, 6));
  EXPECT_FALSE(buffer.may_have_sooner());
  EXPECT_EQ(buffer.begin_fetch().id, id(6));
}

TEST(RowBuffer, ASoonerRowTakesTheLastOnesPlace) {
  BufferTotals totals;
  RowBuffer buffer(totals);
  for (const uint8_t n : {5, 6, 7}) buffer.offer(row(n), true);
  EXPECT_TRUE(buffer.offer(row(2), false));
  EXPECT_THAT(numbers(buffer), ElementsAre(2, 5, 6));
  EXPECT_TRUE(buffer.may_have_more());
  EXPECT_EQ(buffer.begin_fetch().id, id(7)) << "the one that made way is in the table";
}

TEST(RowBuffer, AnAnnouncementBeforeWhatIsInMemoryMayBeSooner) {
  BufferTotals totals;
  RowBuffer buffer(totals);
  for (const uint8_t n : {5, 6, 7}) buffer.offer(row(n), true);
  buffer.expect_more_from(row(2).key);
  EXPECT_TRUE(buffer.may_have_sooner());
  buffer.shrink(1);
  EXPECT_EQ(buffer.begin_fetch().id, id(2));
  const auto known = [](model::DeliveryId of) { return of == id(5); };
  EXPECT_EQ(buffer.fetched(rows({2, 3, 4}), false, known), 3u);
  EXPECT_THAT(numbers(buffer), ElementsAre(2, 3, 4)) << "5 is behind the cursor and comes again";
  EXPECT_FALSE(buffer.may_have_sooner());
  EXPECT_EQ(buffer.begin_fetch().id, id(4));
}

TEST(RowBuffer, AStrictBufferNeverTakesARowWhosePredecessorItHasNotSeen) {
  BufferTotals totals;
  RowBuffer buffer(totals, RowBuffer::Order::strict);
  EXPECT_FALSE(buffer.offer(row(1, 1), true)) << "nothing is known about what came before";
  buffer.begin_fetch();
  buffer.fetched({row(1, 1)}, true, kNothingKnown);
  EXPECT_FALSE(buffer.offer(row(3, 3), true)) << "2 is on its way in another hand-over";
  buffer.begin_fetch();
  buffer.fetched({row(2, 2), row(3, 3)}, true, kNothingKnown);
  EXPECT_TRUE(buffer.offer(row(4, 4), true));
  EXPECT_THAT(numbers(buffer), ElementsAre(1, 2, 3, 4));
}

TEST(RowBuffer, ARetryingHeadOfAStrictBufferStaysTheHead) {
  BufferTotals totals;
  RowBuffer buffer(totals, RowBuffer::Order::strict);
  buffer.expect_more();
  buffer.begin_fetch();
  buffer.fetched({row(1, 1), row(2, 2)}, true, kNothingKnown);
  QueueRow head = buffer.take();
  head.key.due_at += std::chrono::hours(1);
  buffer.put_back(std::move(head));
  EXPECT_THAT(numbers(buffer), ElementsAre(1, 2));
}

TEST(RowBuffer, RowsGivenUpAreFetchedAgain) {
  BufferTotals totals;
  RowBuffer buffer(totals);
  for (const uint8_t n : {1, 2, 3, 4}) buffer.offer(row(n), true);
  EXPECT_EQ(buffer.shrink(1).size(), 3u);
  EXPECT_TRUE(buffer.may_have_more());
  EXPECT_EQ(buffer.begin_fetch().id, id(2));
}

TEST(RowBuffer, ARestartDropsTheRowsOfAFetchUnderWay) {
  BufferTotals totals;
  RowBuffer buffer(totals);
  buffer.expect_more();
  buffer.begin_fetch();
  buffer.restart(RowBuffer::Order::strict);
  EXPECT_EQ(buffer.fetched({row(7, 7)}, true, kNothingKnown), 0u);
  EXPECT_TRUE(buffer.may_have_more());
  EXPECT_EQ(buffer.begin_fetch(), RowKey{});
}

TEST(RowBuffer, TotalsFollowEveryChange) {
  BufferTotals totals;
  {
    RowBuffer one(totals), other(totals);
    QueueRow with_body = row(1);
    auto event = std::make_shared<model::EventContent>();
    event->body = "12345";
    with_body.event = event;
    one.offer(std::move(with_body), true);
    other.offer(row(2), true);
    other.offer(row(3), true);
    other.set_body(0, event);
    EXPECT_EQ(totals.rows, 3u);
    EXPECT_EQ(totals.body_bytes, 10u);
    other.drop_bodies();
    other.shrink(1);
    EXPECT_EQ(totals.rows, 2u);
    EXPECT_EQ(totals.body_bytes, 5u);
    one.take();
    EXPECT_EQ(totals.body_bytes, 0u);
  }
  EXPECT_EQ(totals.rows, 0u);
}

TEST(RowBuffer, AFailedFetchIsTriedAgainFromTheSamePlace) {
  BufferTotals totals;
  RowBuffer buffer(totals);
  buffer.expect_more_from(row(4).key);
  buffer.begin_fetch();
  buffer.fetch_failed();
  EXPECT_TRUE(buffer.may_have_more());
  EXPECT_EQ(buffer.begin_fetch().id, id(4));
}

TEST(RowBuffer, AStrictLaneReadsFromWhatWasOvertaken) {
  BufferTotals totals;
  RowBuffer buffer(totals, RowBuffer::Order::strict);
  buffer.expect_more();
  buffer.begin_fetch();
  std::vector<QueueRow> first;
  first.push_back(row(3, 3));
  buffer.fetched(std::move(first), true, kNothingKnown);
  EXPECT_FALSE(buffer.offer(row(5, 5), true)) << "4 was committed before it and is still on its way";
  EXPECT_EQ(buffer.begin_fetch().position, 4) << "5 must not be fetched without 4";
}

}  // namespace
}  // namespace postrider::delivery
