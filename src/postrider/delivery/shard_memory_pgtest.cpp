// The rows of a lane that are in memory, and that the others do not wait longer than necessary.
#include <algorithm>

#include "postrider/delivery/delivery_testing.hpp"

namespace postrider::delivery {
namespace {

using testing::ElementsAreArray;
using testing::UnorderedElementsAreArray;

struct ShardMemoryTest : DeliveryTest {
  ShardMemoryTest() { make_tenant("acme"); }

  static ShardOptions small_lanes(size_t rows) {
    ShardOptions options;
    options.memory.lane_rows_max = rows;
    options.reader.patrol_interval = 1h;  // it would find what the rest forgets
    return options;
  }
  static Fields retries_in(std::chrono::seconds due_in) { return {.attempts = 1, .due_in = due_in}; }
  static Edit retried_after(int seconds) {
    return [seconds](registry::EndpointSettings& settings) {
      settings.retry_schedule = "[" + std::to_string(seconds) + "]";
    };
  }
  // Some rows are in memory, and not more than that.
  static bool wait_for_rows(TestShard& shard, size_t most) {
    const auto deadline = base::BootClock::now() + 20s;
    size_t rows = 0;
    while ((rows == 0 || rows > most) && base::BootClock::now() < deadline) {
      std::this_thread::sleep_for(10ms);
      shard.call([&](Shard& on) { rows = on.memory().rows; });
    }
    return rows > 0 && rows <= most;
  }
  // How many rows of the endpoint are left, and that this is so although everything else is done.
  void wait_for_left(const std::string& count) {
    db.wait_for("select count(*) from queue where bucket >= 0", count);
  }
};

TEST_F(ShardMemoryTest, ARetryThatIsDueSoonIsNotKeptWaitingByThoseDueLate) {
  auto endpoint = make_endpoint("acme", receiver.url("/in"), retried_after(1));
  commit(endpoint, numbered(20), retries_in(1h));
  TestShard shard(db, ids, keys, small_lanes(8));
  shard.take_all();
  receiver.answer("/in", {.status = 503});
  shard.offer(commit(endpoint, {"fresh"}));
  ASSERT_TRUE(receiver.wait_for_count("/in", 1));
  receiver.answer("/in", {.status = 204});
  ASSERT_TRUE(receiver.wait_for_count("/in", 2));
  wait_for_left("20");
}

TEST_F(ShardMemoryTest, ARowThatSomebodyHurriesIsReadFromTheTable) {
  auto endpoint = make_endpoint("acme", receiver.url("/in"));
  const auto rows = commit(endpoint, numbered(20), retries_in(1h));
  TestShard shard(db, ids, keys, small_lanes(8));
  shard.take_all();
  shard.offer(commit(endpoint, {"fresh"}));
  ASSERT_TRUE(receiver.wait_for_count("/in", 1));
  wait_for_left("20");
  for (const size_t expedited : {15u, 2u}) {
    db.sql("update queue set due_at = now() where id = " + quoted(rows[expedited].id.uuid));
    shard.call([&](Shard& on) { on.expedite_delivery(endpoint.id, rows[expedited].id); });
  }
  ASSERT_TRUE(receiver.wait_for_count("/in", 3));
  wait_for_left("18");
  EXPECT_THAT(receiver.bodies("/in"), UnorderedElementsAreArray({"fresh", "15", "2"}));
}

TEST_F(ShardMemoryTest, AnAnnouncedRowIsReadAlthoughEnoughLaterOnesAreInMemory) {
  auto endpoint = make_endpoint("acme", receiver.url("/in"));
  commit(endpoint, numbered(20), {.due_in = 1h});
  TestShard shard(db, ids, keys, small_lanes(8));
  shard.take_all();
  shard.offer(commit(endpoint, {"fresh"}));
  ASSERT_TRUE(receiver.wait_for_count("/in", 1));
  wait_for_left("20");
  // So old that the handoff only counts as an announcement.
  shard.offer(commit(endpoint, {"late"}, {.age = 15s}));
  ASSERT_TRUE(receiver.wait_for_count("/in", 2));
  wait_for_left("20");
}

TEST_F(ShardMemoryTest, ARowCanceledWhileItIsReadIsNotSent) {
  auto endpoint = make_endpoint("acme", receiver.url("/in"));
  TestShard shard(db, ids, keys);
  shard.take_all();
  shard.offer(commit(endpoint, {"first"}));
  ASSERT_TRUE(receiver.wait_for_count("/in", 1));
  wait_until_drained();
  // The fetch sees the row, as one does whose snapshot is older than the cancellation.
  const auto canceled = commit(endpoint, {"canceled"}).front().id;
  shard.call([&](Shard& on) {
    on.expedite_delivery(endpoint.id, canceled);
    shard.post([&](Shard& fetching) { fetching.cancel_delivery(endpoint.id, canceled); });
  });
  shard.offer(commit(endpoint, {"next"}));
  ASSERT_TRUE(receiver.wait_for_count("/in", 2));
  wait_for_left("1");
  EXPECT_THAT(receiver.bodies("/in"), ElementsAreArray({"first", "next"}));
}

TEST_F(ShardMemoryTest, LanesThatCannotSendDoNotKeepTheOthersRowsOut) {
  auto options = small_lanes(40);
  options.memory.rows_max = 40;
  auto dead = make_endpoint("acme", receiver.url("/dead"));
  commit(dead, numbered(100, "dead-"), retries_in(1h));
  TestShard shard(db, ids, keys, options);
  shard.take_all();
  EXPECT_TRUE(wait_for_rows(shard, options.memory.rows_max / 2)) << "it keeps what others could use";
  auto healthy = make_endpoint("acme", receiver.url("/in"));
  shard.offer(commit(healthy, {"late"}, {.due_in = 1h}));
  for (int i = 0; i < 5; ++i) shard.offer(commit(healthy, numbered(10, std::to_string(i))));
  ASSERT_TRUE(receiver.wait_for_count("/in", 50));
  wait_for_left("101");
}

TEST_F(ShardMemoryTest, AHandOverThatComesLateIsReadFromTheTable) {
  auto endpoint = make_endpoint("acme", receiver.url("/in"));
  TestShard shard(db, ids, keys);
  shard.take_all();
  // Its commit took so long that it was found, sent and written down meanwhile.
  const auto rows = commit(endpoint, {"slow"}, {.age = 15s});
  shard.discover(rows);
  ASSERT_TRUE(receiver.wait_for_count("/in", 1));
  wait_until_drained();
  shard.offer(rows);
  shard.offer(commit(endpoint, {"next"}));
  ASSERT_TRUE(receiver.wait_for_count("/in", 2));
  wait_until_drained();
  EXPECT_THAT(receiver.bodies("/in"), ElementsAreArray({"slow", "next"}));
}

TEST_F(ShardMemoryTest, LargeBodiesAreHeldUpToALimitAndAllArrive) {
  auto options = small_lanes(500);
  options.memory.body_bytes_max = 1 << 20;
  options.loader.bytes_per_load = 256 << 10;
  options.memory.lane_bytes_max = 256 << 10;
  auto endpoint = make_endpoint("acme", receiver.url("/in"));
  std::vector<std::string> bodies;
  for (int i = 0; i < 60; ++i) bodies.push_back(std::to_string(i) + "-" + std::string(100 << 10, 'x'));
  commit(endpoint, bodies);
  TestShard shard(db, ids, keys, options);
  size_t most = 0;
  shard.take_all();
  while (receiver.count("/in") < bodies.size() && live_rows() != "0")
    shard.call([&](Shard& on) { most = std::max(most, on.memory().body_bytes); });
  wait_until_drained();
  EXPECT_THAT(receiver.bodies("/in"), UnorderedElementsAreArray(bodies));
  // One load may begin just below the limit, and end one body above its own.
  EXPECT_LE(most, options.memory.lane_bytes_max + options.loader.bytes_per_load + (101u << 10));
}

TEST_F(ShardMemoryTest, AWideRangeOfAnotherNodeIsReadInPages) {
  auto endpoint = make_endpoint("acme", receiver.url("/in"));
  auto options = small_lanes(500);
  options.reader.found_rows_max = 10;
  TestShard shard(db, ids, keys, options);
  shard.take_all();
  shard.discover(commit(endpoint, numbered(95)));
  ASSERT_TRUE(receiver.wait_for_count("/in", 95));
  wait_until_drained();
  EXPECT_THAT(receiver.bodies("/in"), UnorderedElementsAreArray(numbered(95)));
}

TEST_F(ShardMemoryTest, ASweepEndsOnlyWhenNothingIsLeft) {
  auto endpoint = make_endpoint("acme", receiver.url("/in"));
  commit(endpoint, numbered(1'200), {.due_in = 1h});
  set_status(endpoint, model::EndpointStatus::disabled);
  // One of the first 500 is canceled while the sweep waits for its lock.
  support::SyncSql canceling(db.url());
  canceling(
      "begin; delete from queue where id = (select id from queue where bucket >= 0 order by due_at limit 1)");
  TestShard shard(db, ids, keys);
  shard.take_all();
  db.wait_for("select count(*) from pg_stat_activity where wait_event_type = 'Lock'", "1");
  canceling("commit");
  wait_until_drained();
}

TEST_F(ShardMemoryTest, WhatWasBehindARetryIsFreeOnceOrderIsNotAskedForAnyMore) {
  auto endpoint = make_endpoint("acme", receiver.url("/in"), [](registry::EndpointSettings& settings) {
    settings.ordering = model::Ordering::strict;
    settings.retry_schedule = "[3600]";
  });
  receiver.answer("/in", {.status = 503});
  TestShard shard(db, ids, keys);
  shard.take_all();
  shard.offer(commit(endpoint, {"head", "a", "b"}));
  ASSERT_TRUE(receiver.wait_for_count("/in", 1));
  db.wait_for("select count(*) from queue where attempts = 1", "1");
  receiver.answer("/in", {.status = 204});
  db.sql("update endpoint set ordering = 'none'");
  shard.refresh(endpoint);
  ASSERT_TRUE(receiver.wait_for_count("/in", 3));
  wait_for_left("1");
  EXPECT_THAT(receiver.bodies("/in"), UnorderedElementsAreArray({"head", "a", "b"}));
}

TEST_F(ShardMemoryTest, ARetryLosesItsPlaceInTheOrderThatIsNotKeptAnyMore) {
  auto endpoint = make_endpoint("acme", receiver.url("/in"), retried_after(3600));
  receiver.answer("/in", {.status = 503});
  commit(endpoint, {"x"});
  db.sql("update queue set position = 7 where bucket >= 0");
  TestShard shard(db, ids, keys);
  shard.take_all();
  ASSERT_TRUE(receiver.wait_for_count("/in", 1));
  db.wait_for("select retry, position from queue where attempts = 1", "t|0");
}

TEST_F(ShardMemoryTest, TheTableIsLookedAtNowAndThenWhoeverForgotToAnnounce) {
  auto endpoint = make_endpoint("acme", receiver.url("/in"));
  ShardOptions options;
  options.reader.patrol_interval = 10ms;
  TestShard shard(db, ids, keys, options);
  shard.take_all();
  shard.offer(commit(endpoint, {"first"}));
  ASSERT_TRUE(receiver.wait_for_count("/in", 1));
  commit(endpoint, {"nobody said so"});
  ASSERT_TRUE(receiver.wait_for_count("/in", 2));
  wait_until_drained();
}

TEST_F(ShardMemoryTest, ALaneHasOneTimer) {
  auto endpoint = make_endpoint("acme", receiver.url("/in"),
                                [](registry::EndpointSettings& settings) { settings.rate_per_second = 200; });
  commit(endpoint, {"tomorrow"}, retries_in(24h));
  TestShard shard(db, ids, keys);
  shard.take_all();
  shard.offer(commit(endpoint, numbered(100)));
  ASSERT_TRUE(receiver.wait_for_count("/in", 100));
  wait_for_left("1");
  shard.call([](Shard& on) { EXPECT_LE(on.lanes().timers(), 1u); });
}

}  // namespace
}  // namespace postrider::delivery
