// A shard with a real Postgres and a real receiver: everything arrives once, in order where order is
// promised.
#include <algorithm>
#include <set>

#include "postrider/delivery/delivery_testing.hpp"

namespace postrider::delivery {
namespace {

using testing::ElementsAreArray;
using testing::UnorderedElementsAreArray;

struct ShardTest : DeliveryTest {
  ShardTest() { make_tenant("acme"); }

  static Edit strict() {
    return [](registry::EndpointSettings& settings) { settings.ordering = model::Ordering::strict; };
  }
  TestEndpoint make_endpoint_in(int bucket, const std::string& path) {
    auto made = make_endpoint("acme", receiver.url(path));
    made.bucket = bucket;  // what its rows say counts
    return made;
  }
  static ShardOptions small_lanes(size_t rows) {
    ShardOptions options;
    options.memory.lane_rows_max = rows;
    return options;
  }
};

TEST_F(ShardTest, DeliversWhatWasPendingAtTheStart) {
  auto endpoint = make_endpoint("acme", receiver.url("/in"));
  commit(endpoint, numbered(250));
  TestShard shard(db, ids, keys);
  shard.take_all();
  ASSERT_TRUE(receiver.wait_for_count("/in", 250));
  wait_until_drained();
  EXPECT_THAT(receiver.bodies("/in"), UnorderedElementsAreArray(numbered(250)));
  EXPECT_EQ(db.sql("select outcome, attempt, count(*) from attempt group by 1, 2"), "delivered|1|250");
}

TEST_F(ShardTest, DeliversWhatIsHandedOverWithoutAnyFetch) {
  auto endpoint = make_endpoint("acme", receiver.url("/in"));
  TestShard shard(db, ids, keys);
  shard.take_all();
  shard.offer(commit(endpoint, {"warm-up"}));
  ASSERT_TRUE(receiver.wait_for_count("/in", 1));
  wait_until_drained();
  // The fetch sees no rows: bodies and rows come from memory only.
  const auto rows = commit(endpoint, numbered(20));
  db.sql("update event set body = 'read from the table'");
  shard.offer(rows);
  ASSERT_TRUE(receiver.wait_for_count("/in", 21));
  wait_until_drained();
  auto bodies = receiver.bodies("/in");
  bodies.erase(bodies.begin());
  EXPECT_THAT(bodies, UnorderedElementsAreArray(numbered(20)));
}

TEST_F(ShardTest, FindsWhatAnotherNodeCommitted) {
  auto endpoint = make_endpoint("acme", receiver.url("/in"));
  TestShard shard(db, ids, keys);
  shard.take_all();
  shard.discover(commit(endpoint, numbered(30)));
  ASSERT_TRUE(receiver.wait_for_count("/in", 30));
  wait_until_drained();
  EXPECT_THAT(receiver.bodies("/in"), UnorderedElementsAreArray(numbered(30)));
}

TEST_F(ShardTest, ARowThatIsFoundAndHandedOverIsSentOnce) {
  auto endpoint = make_endpoint("acme", receiver.url("/in"));
  TestShard shard(db, ids, keys);
  shard.take_all();
  // A range of another node may contain rows of our own, in either order.
  const auto first = commit(endpoint, numbered(10, "a"));
  shard.discover(first);
  ASSERT_TRUE(receiver.wait_for_count("/in", 10));
  wait_until_drained();
  shard.offer(first);
  const auto second = commit(endpoint, numbered(10, "b"));
  shard.offer(second);
  shard.discover(second);
  ASSERT_TRUE(receiver.wait_for_count("/in", 20));
  wait_until_drained();
  shard.offer(commit(endpoint, {"last"}));
  ASSERT_TRUE(receiver.wait_for_count("/in", 21));
  wait_until_drained();
  EXPECT_EQ(receiver.count("/in"), 21u);
}

TEST_F(ShardTest, WhatDoesNotFitIntoMemoryIsFetchedAndNothingIsDoubled) {
  auto endpoint = make_endpoint("acme", receiver.url("/in"));
  TestShard shard(db, ids, keys, small_lanes(8));
  shard.take_all();
  std::vector<std::string> expected;
  for (int batch = 0; batch < 40; ++batch) {
    const auto bodies = numbered(25, std::to_string(batch) + "-");
    expected.insert(expected.end(), bodies.begin(), bodies.end());
    shard.offer(commit(endpoint, bodies));
  }
  ASSERT_TRUE(receiver.wait_for_count("/in", expected.size()));
  wait_until_drained();
  EXPECT_THAT(receiver.bodies("/in"), UnorderedElementsAreArray(expected));
}

TEST_F(ShardTest, CommitsDuringFetchesAreNeitherLostNorDoubled) {
  std::vector<TestEndpoint> endpoints;
  for (int i = 0; i < 5; ++i)
    endpoints.push_back(make_endpoint("acme", receiver.url("/" + std::to_string(i))));
  TestShard shard(db, ids, keys, small_lanes(6));
  shard.take_all();
  size_t expected = 0;
  for (int round = 0; round < 300; ++round) {
    auto& endpoint = endpoints[static_cast<size_t>(round) % endpoints.size()];
    const auto rows = commit(endpoint, numbered(8, std::to_string(round) + "-"));
    expected += rows.size();
    if (round % 3 == 0) shard.discover(rows);
    if (round % 7 == 0) shard.call([](Shard& each) { each.rescan(); });
    shard.offer(rows);
  }
  ASSERT_TRUE(receiver.wait_for([&] { return receiver.received().size() >= expected; }));
  wait_until_drained();
  std::set<std::string> seen;
  for (const auto& one : receiver.received())
    EXPECT_TRUE(seen.insert(one.id).second) << "sent twice: " << one.body;
  EXPECT_EQ(seen.size(), expected);
  EXPECT_EQ(shard.metrics.late_settles_dropped.value(), 0);
}

TEST_F(ShardTest, AStrictEndpointReceivesInOrderEvenThroughTheTable) {
  auto endpoint = make_endpoint("acme", receiver.url("/in"), strict());
  commit(endpoint, numbered(50, "a"));
  TestShard shard(db, ids, keys, small_lanes(8));
  shard.take_all();
  std::vector<std::string> expected = numbered(50, "a");
  for (int batch = 0; batch < 20; ++batch) {
    const auto bodies = numbered(5, "b" + std::to_string(batch) + "-");
    expected.insert(expected.end(), bodies.begin(), bodies.end());
    shard.offer(commit(endpoint, bodies));
  }
  ASSERT_TRUE(receiver.wait_for_count("/in", expected.size()));
  wait_until_drained();
  EXPECT_THAT(receiver.bodies("/in"), ElementsAreArray(expected));
  EXPECT_EQ(receiver.concurrent_max("/in"), 1);
}

TEST_F(ShardTest, HandOversThatOvertakeEachOtherKeepAStrictEndpointsOrder) {
  auto endpoint = make_endpoint("acme", receiver.url("/in"), strict());
  TestShard shard(db, ids, keys);
  shard.take_all();
  std::vector<std::string> expected;
  for (int round = 0; round < 30; ++round) {
    const std::string n = std::to_string(round);
    const auto first = commit(endpoint, {"first" + n});
    const auto second = commit(endpoint, {"second" + n});
    shard.offer(second);
    shard.offer(first);
    expected.push_back("first" + n);
    expected.push_back("second" + n);
  }
  ASSERT_TRUE(receiver.wait_for_count("/in", expected.size()));
  wait_until_drained();
  EXPECT_THAT(receiver.bodies("/in"), ElementsAreArray(expected));
}

TEST_F(ShardTest, ARetryingHeadHoldsAStrictLaneUntilItIsADeadLetter) {
  receiver.answer("/in", {.status = 503});
  auto endpoint = make_endpoint("acme", receiver.url("/in"), [](registry::EndpointSettings& settings) {
    settings.ordering = model::Ordering::strict;
    settings.max_attempts = 2;
    settings.retry_schedule = R"([1])";
  });
  TestShard shard(db, ids, keys);
  shard.take_all();
  shard.offer(commit(endpoint, {"head", "next", "last"}));
  ASSERT_TRUE(receiver.wait_for_count("/in", 2));
  receiver.answer("/in", {});
  wait_until_drained();
  EXPECT_THAT(receiver.bodies("/in"), ElementsAreArray({"head", "head", "next", "last"}))
      << "nothing overtakes the retrying head";
  EXPECT_EQ(db.sql("select cause, attempts from dead_letter"), "exhausted|2");
}

TEST_F(ShardTest, OrderHoldsAfterATakeover) {
  receiver.answer("/in", {.status = 503});
  auto endpoint = make_endpoint("acme", receiver.url("/in"), [](registry::EndpointSettings& settings) {
    settings.ordering = model::Ordering::strict;
    settings.retry_schedule = R"([3600])";
  });
  {
    TestShard shard(db, ids, keys);
    shard.take_all();
    shard.offer(commit(endpoint, {"1", "2", "3"}));
    db.wait_for("select max(attempts) from queue", "1");
  }
  db.sql("update queue set due_at = now() where bucket >= 0");
  receiver.answer("/in", {});
  ShardOptions options;
  options.node_id = node_number(2);
  TestShard successor(db, ids, keys, options);
  successor.take_all();
  wait_until_drained();
  EXPECT_THAT(receiver.bodies("/in"), ElementsAreArray({"1", "1", "2", "3"}));
}

TEST_F(ShardTest, RetriesThatWaitDoNotHideFreshEvents) {
  auto endpoint = make_endpoint("acme", receiver.url("/in"));
  Fields later;
  later.attempts = 1;
  later.due_in = 3600s;
  commit(endpoint, numbered(60, "later"), later);
  TestShard shard(db, ids, keys, small_lanes(16));
  shard.take_all();
  commit(endpoint, numbered(40, "fresh"));
  shard.call([](Shard& each) { each.rescan(); });
  ASSERT_TRUE(receiver.wait_for_count("/in", 40));
  db.wait_for("select count(*) from queue where bucket >= 0", "60");
  shard.offer(commit(endpoint, {"handed over"}));
  ASSERT_TRUE(receiver.wait_for_count("/in", 41));
}

TEST_F(ShardTest, AProbeLoadsTheBodyThatItSends) {
  receiver.answer("/in", {.status = 503, .delay = 50ms});
  auto endpoint = make_endpoint("acme", receiver.url("/in"),
                                [](registry::EndpointSettings& settings) { settings.max_attempts = 1; });
  constexpr size_t body_bytes = 100 << 10;
  commit(endpoint, std::vector<std::string>(8, std::string(body_bytes, 'x')));
  ShardOptions options;
  options.memory.body_bytes_max = options.memory.lane_bytes_max = options.loader.bytes_per_load =
      body_bytes / 2;
  options.breaker.failures_to_open = 1;
  options.breaker.probe_interval_min = options.breaker.probe_interval_max = 1100ms;  // so long that it rests
  TestShard shard(db, ids, keys, options);
  shard.take_all();
  size_t most = 0;
  // Each probe takes another one.
  EXPECT_TRUE(receiver.wait_for([&] {
    shard.call([&](Shard& on) { most = std::max(most, on.memory().body_bytes); });
    return receiver.count("/in") >= 5;
  }));
  EXPECT_LE(most, body_bytes);
}

TEST_F(ShardTest, RetriesThatRestTakeNoRoomFromWhatIsDue) {
  auto endpoint = make_endpoint("acme", receiver.url("/in"));
  Fields later;
  later.attempts = 1;
  later.due_in = 3600s;
  commit(endpoint, numbered(2, std::string(1'000, 'x')), later);
  ShardOptions options;
  options.loader.bytes_per_load = 500;
  TestShard shard(db, ids, keys, options);
  commit(endpoint, {"due"});
  shard.take_all();
  ASSERT_TRUE(receiver.wait_for_count("/in", 1));
}

TEST_F(ShardTest, ABucketIsDrainedWhenItsSlowestAttemptIsOver) {
  receiver.answer("/slow", {.hangs = true});
  auto slow = make_endpoint_in(3, "/slow"), quick = make_endpoint_in(3, "/quick");
  TestShard shard(db, ids, keys);
  shard.take_all();
  shard.offer(commit(slow, {"first"}));
  ASSERT_TRUE(receiver.wait_for_count("/slow", 1));
  auto drained = shard.drain_bucket(3, 50ms);
  shard.offer(commit(slow, {"second"}));
  shard.offer(commit(quick, {"a"}));
  ASSERT_TRUE(receiver.wait_for_count("/quick", 1)) << "it waits for its neighbour";
  EXPECT_EQ(drained.wait_for(0s), std::future_status::timeout);
  receiver.answer("/slow", {});
  EXPECT_TRUE(drained.get());
  EXPECT_EQ(receiver.concurrent("/slow"), 0);
  // From now on another node owns it.
  shard.offer(commit(quick, {"b"}));
  auto beside = make_endpoint_in(4, "/beside");
  shard.offer(commit(beside, {"c"}));
  ASSERT_TRUE(receiver.wait_for_count("/beside", 1));
  EXPECT_EQ(receiver.count("/quick"), 1u);
  EXPECT_EQ(receiver.count("/slow"), 1u);
  db.wait_for("select count(*) from queue where bucket >= 0", "2");
}

TEST_F(ShardTest, ADrainEndsWithTheShardOrTheLease) {
  receiver.answer("/slow", {.hangs = true});
  auto slow = make_endpoint_in(3, "/slow");
  TestShard shard(db, ids, keys);
  shard.take_all();
  shard.offer(commit(slow, {"first"}));
  ASSERT_TRUE(receiver.wait_for_count("/slow", 1));
  auto lost = shard.drain_bucket(3, 10ms);
  shard.call([](Shard& on) { on.drop_bucket(3); });
  EXPECT_FALSE(lost.get());
  shard.take_all();
  ASSERT_TRUE(receiver.wait_for_count("/slow", 2));
  auto stopped = shard.drain_bucket(3, 1h);
  shard.call([](Shard& on) { on.stop_sending(); });
  EXPECT_FALSE(stopped.get());
}

// Drains that wait at the same time wake each other.
struct ShardDrainTest : ShardTest {
  ShardDrainTest() {
    receiver.answer("/slow", {.hangs = true});
    shard.take_all();
    for (int bucket = 1; bucket <= kBuckets; ++bucket) {
      auto slow = make_endpoint_in(bucket, "/slow"), quick = make_endpoint_in(bucket, "/quick");
      shard.offer(commit(slow, {"hangs"}));
      shard.offer(commit(quick, {"is answered"}));
    }
    db.wait_for("select count(*) from queue where bucket >= 0", std::to_string(kBuckets));
    EXPECT_TRUE(receiver.wait_for_count("/slow", kBuckets));
  }
  std::vector<std::future<bool>> drain_all(std::chrono::milliseconds patience) {
    std::vector<std::future<bool>> drains;
    for (int bucket = 1; bucket <= kBuckets; ++bucket) drains.push_back(shard.drain_bucket(bucket, patience));
    return drains;
  }

  static constexpr int kBuckets = 4;
  TestShard shard{db, ids, keys};
};

TEST_F(ShardDrainTest, SeveralBucketsAreDrainedAtOnce) {
  auto drains = drain_all(1ms);
  auto beside = make_endpoint_in(9, "/beside");
  shard.offer(commit(beside, {"goes on"}));
  ASSERT_TRUE(receiver.wait_for_count("/beside", 1));
  receiver.answer("/slow", {});
  for (auto& drained : drains) EXPECT_TRUE(drained.get());
}

TEST_F(ShardDrainTest, AStopEndsAllOfThem) {
  auto drains = drain_all(1h);
  shard.call([](Shard& on) { on.stop_sending(); });
  for (auto& drained : drains) EXPECT_FALSE(drained.get());
}

TEST_F(ShardDrainTest, ABucketThatIsTakenAgainEndsItsDrain) {
  auto drains = drain_all(1h);
  shard.take_all();
  for (auto& drained : drains) EXPECT_FALSE(drained.get());
}

TEST_F(ShardTest, IsDrainedOnceItsLastResultIsWritten) {
  receiver.answer("/slow", {.hangs = true});
  auto slow = make_endpoint_in(3, "/slow");
  TestShard shard(db, ids, keys);
  shard.take_all();
  shard.offer(commit(slow, {"first"}));
  ASSERT_TRUE(receiver.wait_for_count("/slow", 1));
  std::string left;
  shard.post([](Shard& on) { on.stop_sending(); });
  auto drained = shard.drain(60s, [&] { left = live_rows(); });
  receiver.answer("/slow", {});
  drained.get();
  EXPECT_EQ(left, "0");
}

}  // namespace
}  // namespace postrider::delivery
