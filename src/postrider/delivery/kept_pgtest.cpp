// Deliveries that outlive the day of their event.
#include "postrider/delivery/delivery_testing.hpp"

namespace postrider::delivery {
namespace {

struct KeptTest : DeliveryTest {
  KeptTest() { make_tenant("acme"); }

  const std::string today = db.sql("select 'event_' || to_char(now() at time zone 'UTC', 'YYYYMMDD')");
};

TEST_F(KeptTest, ABodyThatOutlivedItsDayIsSent) {
  auto endpoint = make_endpoint("acme", receiver.url("/in"));
  commit(endpoint, numbered(3));
  db.sql("update event set is_kept = true where body <> '1'");
  TestShard shard(db, ids, keys);
  shard.take_all();
  wait_until_drained();
  EXPECT_THAT(receiver.bodies("/in"), testing::UnorderedElementsAre("0", "1", "2"));
  EXPECT_EQ(db.sql("select count(*) from dead_letter"), "0");
}

TEST_F(KeptTest, ADeliveryWaitsForItsBodyWhileRetentionTakesTheDayAway) {
  auto endpoint = make_endpoint("acme", receiver.url("/in"));
  commit(endpoint, {"late"});
  db.sql("alter table event_day detach partition " + today);
  TestShard shard(db, ids, keys);
  shard.take_all();
  const double before = shard.metrics.database_round_trips.value();
  const auto deadline = base::BootClock::now() + 60s;
  while (shard.metrics.database_round_trips.value() < before + 10 && base::BootClock::now() < deadline)
    std::this_thread::yield();
  ASSERT_EQ(live_rows(), "1");
  db.sql(
      "insert into event_kept (id, tenant_id, type, body, is_kept) select id, tenant_id, type, body, true "
      "from " +
      today);
  wait_until_drained();
  EXPECT_THAT(receiver.bodies("/in"), testing::ElementsAre("late"));
}

TEST_F(KeptTest, AnEventThatIsGoneIsStillADeadLetter) {
  auto endpoint = make_endpoint("acme", receiver.url("/in"));
  commit(endpoint, numbered(1));
  db.sql("delete from event");
  TestShard shard(db, ids, keys);
  shard.take_all();
  wait_until_drained();
  EXPECT_EQ(db.sql("select error from dead_letter"), "body_missing");
}

TEST_F(KeptTest, HistoryOfADayThatIsGoneIsWrittenToTheKeptTables) {
  db.sql("update kept_since set below = 'ffffffff-ffff-ffff-ffff-ffffffffffff'");
  receiver.answer("/dead", {.status = 400});
  auto endpoint = make_endpoint("acme", receiver.url("/in"));
  auto dead = make_endpoint("acme", receiver.url("/dead"));
  commit(endpoint, numbered(2));
  commit(dead, numbered(1));
  TestShard shard(db, ids, keys);
  shard.take_all();
  wait_until_drained();
  EXPECT_EQ(db.sql("select count(*) from attempt_kept where outcome = 'delivered'"), "2");
  EXPECT_EQ(db.sql("select count(*) from dead_letter_kept"), "1");
  EXPECT_EQ(db.sql("select count(*) from attempt_day"), "0");
}

TEST_F(KeptTest, WhatWaitedTooLongIsCanceledWithTheReasonOfRetention) {
  auto endpoint = make_endpoint("acme", receiver.url("/in"));
  set_status(endpoint, model::EndpointStatus::paused);
  commit(endpoint, numbered(3), {.age = std::chrono::hours(24 * 70)});
  commit(endpoint, {"young"});
  db.sql(
      "update endpoint set cancel_before = now() - interval '60 days', cancel_reason = 'canceled by "
      "retention: x'");
  TestShard shard(db, ids, keys);
  shard.take_all();
  db.wait_for("select cancel_before is null and cancel_reason is null from endpoint", "t");
  EXPECT_EQ(db.sql("select distinct attempt, outcome, error_detail, count(*) over () from attempt"),
            "0|canceled|canceled by retention: x|3");
  EXPECT_EQ(live_rows(), "1");
  EXPECT_EQ(shard.metrics.retention_canceled.value(), 3);
}

// Makes replays with not_before of what is queued.
constexpr const char* kScheduled =
    "update queue set replay_id = new_id(), due_at = now() + interval '10 days', created_at = now() + "
    "interval '10 days' where bucket >= 0";

TEST_F(KeptTest, AScheduledReplayIsCanceledWithAllThatIsPending) {
  auto endpoint = make_endpoint("acme", receiver.url("/in"));
  commit(endpoint, numbered(2));
  db.sql(kScheduled);
  db.sql("update endpoint set cancel_before = clock_timestamp() + interval '1 second'");
  TestShard shard(db, ids, keys);
  shard.take_all();
  db.wait_for("select cancel_before is null from endpoint", "t");
  EXPECT_EQ(live_rows(), "0");
  EXPECT_EQ(db.sql("select distinct outcome, count(*) over () from attempt"), "canceled|2");
}

TEST_F(KeptTest, AReplayScheduledAfterTheCancelationStays) {
  auto endpoint = make_endpoint("acme", receiver.url("/in"));
  commit(endpoint, numbered(2));
  db.sql(kScheduled);
  db.sql("update endpoint set cancel_before = now() - interval '1 hour'");
  TestShard shard(db, ids, keys);
  shard.take_all();
  db.wait_for("select cancel_before is null from endpoint", "t");
  EXPECT_EQ(live_rows(), "2");
}

TEST_F(KeptTest, RetentionLeavesAScheduledReplayAlone) {
  auto endpoint = make_endpoint("acme", receiver.url("/in"));
  commit(endpoint, numbered(2));
  db.sql(kScheduled);
  db.sql("update endpoint set cancel_before = clock_timestamp() + interval '1 second', cancel_reason = 'x'");
  TestShard shard(db, ids, keys);
  shard.take_all();
  db.wait_for("select cancel_before is null from endpoint", "t");
  EXPECT_EQ(live_rows(), "2");
}

}  // namespace
}  // namespace postrider::delivery
