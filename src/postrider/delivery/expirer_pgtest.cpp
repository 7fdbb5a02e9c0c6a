// Deliveries end at their deadline, whatever keeps them from being sent.
#include "postrider/delivery/delivery_testing.hpp"

namespace postrider::delivery {
namespace {

struct ExpirerTest : DeliveryTest {
  ExpirerTest() { make_tenant("acme"); }

  TestEndpoint endpoint_with_deadline(int seconds, const Edit& edit = {}) {
    return make_endpoint("acme", receiver.url("/in"), [&](registry::EndpointSettings& settings) {
      settings.give_up_seconds = seconds;
      if (edit) edit(settings);
    });
  }
  // Opens at the first failure and probes hours later.
  static ShardOptions slow_breaker() {
    ShardOptions options;
    options.breaker = {.failures_to_open = 1, .probe_interval_min = 1h, .probe_interval_max = 1h};
    return options;
  }
  std::string causes() { return db.sql("select cause, count(*) from dead_letter group by 1 order by 1"); }
  static Fields aged(std::chrono::seconds age, int attempts = 0) {
    Fields fields;
    fields.age = age;
    fields.attempts = attempts;
    return fields;
  }
};

TEST_F(ExpirerTest, WhatWaitsForTheBreakerEndsAtItsDeadline) {
  receiver.answer("/in", {.status = 500});
  auto endpoint = endpoint_with_deadline(60, [](auto& settings) { settings.max_in_flight = 1; });
  TestShard shard(db, ids, keys, slow_breaker());
  shard.take_all();
  shard.offer(commit(endpoint, {"opens it"}));
  db.wait_for("select breaker from endpoint", "open");
  shard.offer(commit(endpoint, numbered(20), aged(58s)));
  db.wait_for("select count(*) from dead_letter", "20");
  EXPECT_EQ(causes(), "expired|20");
  EXPECT_EQ(receiver.count("/in"), 1u) << "none of them was sent";
  EXPECT_EQ(live_rows(), "1") << "the first one has time left";
}

TEST_F(ExpirerTest, NeitherRetryAfterNorARateNorOrderStopsTheClock) {
  receiver.answer("/in", {.status = 503, .retry_after = "3600"});
  auto strict =
      endpoint_with_deadline(60, [](auto& settings) { settings.ordering = model::Ordering::strict; });
  auto slow = make_endpoint("acme", receiver.url("/ok"), [](registry::EndpointSettings& settings) {
    settings.give_up_seconds = 60;
    settings.rate_per_second = 0.001;
  });
  TestShard shard(db, ids, keys);
  shard.take_all();
  shard.offer(commit(strict, numbered(5), aged(57s)));
  shard.offer(commit(slow, numbered(5), aged(57s)));
  wait_until_drained();
  EXPECT_EQ(receiver.count("/in"), 1u);
  EXPECT_EQ(receiver.count("/ok"), 1u);
  EXPECT_EQ(causes(), "expired|9");
}

TEST_F(ExpirerTest, ABacklogThatDoesNotFitIntoMemoryEndsToTheLastRow) {
  receiver.answer("/in", {.status = 500});
  auto endpoint = endpoint_with_deadline(60, [](auto& settings) { settings.max_in_flight = 1; });
  ShardOptions options = slow_breaker();
  options.memory.lane_rows_max = 20;
  TestShard shard(db, ids, keys, options);
  shard.take_all();
  shard.offer(commit(endpoint, {"opens it"}));
  db.wait_for("select breaker from endpoint", "open");
  shard.discover(commit(endpoint, numbered(300), aged(61s)));
  // Of these only the first few by due time are in memory, and they have time left.
  Fields young = aged(0s, 1);
  shard.discover(commit(endpoint, numbered(100, "young"), young));
  Fields old = aged(61s, 1);
  old.due_in = 1s;
  shard.discover(commit(endpoint, numbered(700, "old"), old));
  db.wait_for("select count(*) from dead_letter", "1000");
  EXPECT_EQ(causes(), "expired|1000");
  EXPECT_EQ(live_rows(), "101");
  EXPECT_EQ(receiver.count("/in"), 1u);
}

TEST_F(ExpirerTest, TheClockStandsStillWhileEverythingIsPaused) {
  auto endpoint = endpoint_with_deadline(60);
  TestShard shard(db, ids, keys);
  Brakes brakes{.is_paused = true};
  const base::Timestamp since = ids.now() - 30s;
  brakes.pauses = {{since, {}}};
  shard.call([&](Shard& each) { each.set_brakes(brakes); });
  shard.take_all();
  commit(endpoint, {"waits"}, aged(61s));
  auto other = endpoint_with_deadline(20);
  shard.discover(commit(other, {"too old before"}, aged(61s)));
  db.wait_for("select cause from dead_letter", "expired");
  EXPECT_EQ(live_rows(), "1");
  brakes = {};
  brakes.pauses = {{since, ids.now()}};
  shard.call([&](Shard& each) { each.set_brakes(brakes); });
  shard.call([](Shard& each) { each.rescan(); });
  ASSERT_TRUE(receiver.wait_for_count("/in", 1));
  wait_until_drained();
  EXPECT_EQ(causes(), "expired|1");
}

TEST_F(ExpirerTest, WhatPassedItsDeadlineUnservedGetsOneAttemptFirst) {
  receiver.answer("/in", {.status = 500});
  auto endpoint = endpoint_with_deadline(60, [](auto& settings) { settings.max_in_flight = 1; });
  auto healthy = make_endpoint("acme", receiver.url("/ok"), [](auto& s) { s.give_up_seconds = 60; });
  for (auto* each : {&endpoint, &healthy}) {
    db.sql("insert into unserved_span (bucket, since) values (" + std::to_string(each->bucket) +
           ", now() - interval '100 seconds')");
    commit(*each, {"owed"}, aged(120s));
    commit(*each, {"expired before the outage"}, aged(300s));
  }
  TestShard shard(db, ids, keys);
  shard.take_all();
  wait_until_drained();
  EXPECT_EQ(receiver.bodies("/in"), std::vector<std::string>{"owed"});
  EXPECT_EQ(receiver.bodies("/ok"), std::vector<std::string>{"owed"});
  EXPECT_EQ(causes(), "expired|3");
}

}  // namespace
}  // namespace postrider::delivery
