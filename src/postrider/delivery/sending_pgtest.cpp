// A shard's treatment of endpoints: limits, breaker, Retry-After, statuses, and receivers that hang.
#include <set>

#include "postrider/delivery/delivery_testing.hpp"

namespace postrider::delivery {
namespace {

using testing::UnorderedElementsAreArray;

struct SendingTest : DeliveryTest {
  SendingTest() { make_tenant("acme"); }

  static ShardOptions quick_breaker() {
    ShardOptions options;
    options.breaker.failures_to_open = 3;
    options.breaker.probe_interval_min = 20ms;
    options.breaker.probe_interval_max = 40ms;
    return options;
  }
};

TEST_F(SendingTest, AnEndpointsLimitsHold) {
  receiver.answer("/in", {.delay = 20ms});
  auto endpoint =
      make_endpoint("acme", receiver.url("/in"), [](auto& settings) { settings.max_in_flight = 3; });
  TestShard shard(db, ids, keys);
  shard.take_all();
  shard.offer(commit(endpoint, numbered(40)));
  wait_until_drained();
  EXPECT_EQ(receiver.concurrent_max("/in"), 3);
  EXPECT_EQ(receiver.count("/in"), 40u);
}

TEST_F(SendingTest, AnEndpointsRateHolds) {
  auto endpoint =
      make_endpoint("acme", receiver.url("/in"), [](auto& settings) { settings.rate_per_second = 10; });
  TestShard shard(db, ids, keys);
  const auto before = std::chrono::steady_clock::now();
  shard.take_all();
  shard.offer(commit(endpoint, numbered(25)));
  wait_until_drained();
  // A burst of 10, then one every 100 ms: the 25th cannot be sent before 1.5 s have passed.
  EXPECT_GE(receiver.received("/in").back().at - before, 1500ms);
}

TEST_F(SendingTest, ATenantsAndANodesLimitsHold) {
  registry::TenantSettings settings;
  settings.max_in_flight = 4;
  make_tenant("small", settings);
  std::vector<TestEndpoint> endpoints;
  for (int i = 0; i < 4; ++i) {
    receiver.answer("/small" + std::to_string(i), {.delay = 20ms});
    receiver.answer("/acme" + std::to_string(i), {.delay = 20ms});
    endpoints.push_back(make_endpoint("small", receiver.url("/small" + std::to_string(i))));
    endpoints.push_back(make_endpoint("acme", receiver.url("/acme" + std::to_string(i))));
  }
  ShardOptions options;
  options.chooser.in_flight_max = 24;
  TestShard shard(db, ids, keys, options);
  shard.take_all();
  for (auto& endpoint : endpoints) shard.offer(commit(endpoint, numbered(20)));
  wait_until_drained();
  EXPECT_LE(receiver.concurrent_max(""), 24);
  int small = 0;
  for (int i = 0; i < 4; ++i) small += receiver.concurrent_max("/small" + std::to_string(i));
  EXPECT_LE(small, 4 * 4);
  EXPECT_EQ(receiver.received().size(), 160u);
}

TEST_F(SendingTest, TheBreakerOpensProbesAndClosesWithoutRaisingAttempts) {
  receiver.answer("/in", {.status = 500});
  auto endpoint = make_endpoint("acme", receiver.url("/in"), [](auto& settings) {
    settings.max_in_flight = 1;
    settings.retry_schedule = "[5]";
  });
  TestShard shard(db, ids, keys, quick_breaker());
  shard.take_all();
  shard.offer(commit(endpoint, numbered(10)));
  const char* attempts = "select sum(attempts), max(attempts) from queue where bucket >= 0";
  db.wait_for(attempts, "3|1");
  db.wait_for("select breaker from endpoint", "open");
  ASSERT_TRUE(receiver.wait_for_count("/in", 12)) << "probes go on";
  EXPECT_EQ(db.sql(attempts), "3|1") << "failed probes raise nobody's attempts";
  db.wait_for("select count(*) >= 9 from attempt where is_probe and outcome = 'retrying'", "t");
  EXPECT_EQ(
      db.sql("select count(*) from attempt where is_probe and (attempt >= 0 or probed_attempt is null)"),
      "0");
  EXPECT_EQ(db.sql("select bool_and(probed_attempt = q.attempts + 1 and -attempt <= q.probes) from attempt a "
                   "join queue q on q.id = a.delivery_id where is_probe"),
            "t");
  const auto tried = receiver.bodies("/in");
  EXPECT_GE(std::set<std::string>(tried.begin() + 3, tried.end()).size(), 3u) << "probes go round";
  receiver.answer("/in", {});
  wait_until_drained();
  db.wait_for("select breaker, failing_since is null from endpoint", "closed|t");
  EXPECT_EQ(db.sql("select outcome, count(*) from attempt where attempt > 0 group by 1 order by 1"),
            "delivered|10\nretrying|3");
  EXPECT_EQ(db.sql("select count(*) from attempt"), std::to_string(receiver.count("/in")))
      << "the history has each request";
  EXPECT_EQ(db.sql("select count(*) from dead_letter"), "0");
}

TEST_F(SendingTest, RetryAfterHoldsTheWholeEndpoint) {
  receiver.answer("/in", {.status = 429, .retry_after = "2"});
  auto endpoint = make_endpoint("acme", receiver.url("/in"), [](auto& settings) {
    settings.max_in_flight = 1;
    settings.retry_schedule = "[0]";
  });
  TestShard shard(db, ids, keys);
  shard.take_all();
  shard.offer(commit(endpoint, numbered(5)));
  ASSERT_TRUE(receiver.wait_for_count("/in", 1));
  receiver.answer("/in", {});
  wait_until_drained();
  const auto all = receiver.received("/in");
  ASSERT_EQ(all.size(), 6u);
  EXPECT_GE(all[1].at - all[0].at, 1900ms);
}

TEST_F(SendingTest, GoneDisablesTheEndpointAndSweepsTheRest) {
  receiver.answer("/in", {.status = 410});
  auto endpoint =
      make_endpoint("acme", receiver.url("/in"), [](auto& settings) { settings.max_in_flight = 1; });
  TestShard shard(db, ids, keys);
  shard.take_all();
  shard.offer(commit(endpoint, numbered(1200)));
  db.wait_for("select status from endpoint", "disabled");
  shard.refresh(endpoint);
  wait_until_drained();
  EXPECT_EQ(receiver.count("/in"), 1u);
  EXPECT_EQ(db.sql("select cause, count(*) from dead_letter group by 1 order by 1"),
            "endpoint_disabled|1199\ngone|1");
  // Deliveries that are committed later are swept, too.
  shard.offer(commit(endpoint, {"late"}));
  wait_until_drained();
  EXPECT_EQ(receiver.count("/in"), 1u);
}

TEST_F(SendingTest, RowsOfADeletedEndpointAreCanceled) {
  receiver.answer("/in", {.hangs = true});
  auto endpoint =
      make_endpoint("acme", receiver.url("/in"), [](auto& settings) { settings.max_in_flight = 1; });
  TestShard shard(db, ids, keys);
  shard.take_all();
  shard.offer(commit(endpoint, numbered(20)));
  ASSERT_TRUE(receiver.wait_for_count("/in", 1));
  registry::EndpointRef ref{"acme", endpoint.public_id};
  EXPECT_TRUE(run(registry::delete_endpoint(registry_link, caller, ref)).ok());
  shard.refresh(endpoint);
  // Configurations are loaded in order: once a new endpoint has its own, the deletion is known.
  auto other = make_endpoint("acme", receiver.url("/other"));
  shard.offer(commit(other, {"x"}));
  ASSERT_TRUE(receiver.wait_for_count("/other", 1));
  db.wait_for("select count(*) from attempt", "1");
  receiver.answer("/in", {});
  wait_until_drained();
  EXPECT_EQ(db.sql("select outcome, count(*) from attempt group by 1 order by 1"),
            "canceled|19\ndelivered|2");
  EXPECT_EQ(db.sql("select count(*) from dead_letter"), "0");
}

TEST_F(SendingTest, APausedEndpointHoldsAndDrainsWhenResumed) {
  auto endpoint = make_endpoint("acme", receiver.url("/in"));
  auto other = make_endpoint("acme", receiver.url("/other"));
  TestShard shard(db, ids, keys);
  shard.take_all();
  shard.offer(commit(endpoint, {"before"}));
  wait_until_drained();
  set_status(endpoint, model::EndpointStatus::paused);
  shard.refresh(endpoint);
  // A later delivery of another endpoint proves that the lane has received the change.
  shard.offer(commit(other, {"x"}));
  ASSERT_TRUE(receiver.wait_for_count("/other", 1));
  shard.offer(commit(endpoint, numbered(200)));
  shard.offer(commit(other, {"y"}));
  ASSERT_TRUE(receiver.wait_for_count("/other", 2));
  db.wait_for("select count(*) from queue where bucket >= 0", "200");
  EXPECT_EQ(receiver.count("/in"), 1u);
  set_status(endpoint, model::EndpointStatus::active);
  shard.refresh(endpoint);
  wait_until_drained();
  EXPECT_EQ(receiver.count("/in"), 201u);
}

TEST_F(SendingTest, APausedTenantHoldsWhileOthersGoOnAndDrainsWhenResumed) {
  make_tenant("globex");
  auto endpoint = make_endpoint("acme", receiver.url("/in"));
  auto other = make_endpoint("globex", receiver.url("/other"));
  TestShard shard(db, ids, keys);
  shard.take_all();
  shard.offer(commit(endpoint, {"before"}));
  wait_until_drained();
  ASSERT_TRUE(run(registry::pause_tenant(registry_link, caller, "acme", "incident")).ok());
  shard.call([](Shard& on) { on.refresh_tenant("acme"); });
  shard.offer(commit(other, {"x"}));
  ASSERT_TRUE(receiver.wait_for_count("/other", 1));
  shard.offer(commit(endpoint, numbered(200)));
  shard.offer(commit(other, {"y"}));
  ASSERT_TRUE(receiver.wait_for_count("/other", 2));
  db.wait_for("select count(*) from queue where bucket >= 0", "200");
  EXPECT_EQ(receiver.count("/in"), 1u);
  ASSERT_TRUE(run(registry::resume_tenant(registry_link, caller, "acme", "over")).ok());
  shard.call([](Shard& on) { on.refresh_tenant("acme"); });
  wait_until_drained();
  EXPECT_EQ(receiver.count("/in"), 201u);
}

TEST_F(SendingTest, AChangedUrlAppliesToWhatWaits) {
  receiver.answer("/old", {.status = 500});
  auto endpoint = make_endpoint("acme", receiver.url("/old"), [](auto& settings) {
    settings.max_in_flight = 1;
    settings.retry_schedule = "[0]";
  });
  TestShard shard(db, ids, keys, quick_breaker());
  shard.take_all();
  shard.offer(commit(endpoint, numbered(20)));
  db.wait_for("select breaker from endpoint", "open");
  registry::EndpointRef ref{"acme", endpoint.public_id};
  registry::EndpointEdit edit;
  edit.apply = [this](registry::EndpointDraft& draft) {
    draft.settings.url = receiver.url("/new");
    return true;
  };
  EXPECT_TRUE(run(registry::change_endpoint(registry_link, context, caller, ref, std::move(edit))).ok());
  shard.refresh(endpoint);
  wait_until_drained();
  EXPECT_THAT(receiver.bodies("/new"), UnorderedElementsAreArray(numbered(20)));
}

TEST_F(SendingTest, ADeliveryThatIsTooOldEndsWithoutAnotherExchange) {
  auto endpoint =
      make_endpoint("acme", receiver.url("/in"), [](auto& settings) { settings.give_up_seconds = 60; });
  Fields old;
  old.attempts = 2;
  old.age = 120s;
  commit(endpoint, {"old"}, old);
  TestShard shard(db, ids, keys);
  shard.take_all();
  wait_until_drained();
  EXPECT_EQ(receiver.count("/in"), 0u);
  EXPECT_EQ(db.sql("select cause, attempts from dead_letter"), "expired|2");
  EXPECT_EQ(db.sql("select attempt, outcome from attempt"), "0|dead_letter");
}

TEST_F(SendingTest, HangingEndpointsDoNotKeepHealthyOnesWaiting) {
  make_tenant("hanging");
  std::vector<TestEndpoint> hanging, healthy;
  for (int i = 0; i < 5; ++i) {
    const std::string n = std::to_string(i);
    receiver.answer("/hang" + n, {.hangs = true});
    hanging.push_back(make_endpoint("hanging", receiver.url("/hang" + n)));
    healthy.push_back(make_endpoint("acme", receiver.url("/ok" + n)));
  }
  ShardOptions options;
  options.chooser.in_flight_max = 16;
  TestShard shard(db, ids, keys, options);
  shard.take_all();
  for (auto& endpoint : hanging) shard.offer(commit(endpoint, numbered(100)));
  ASSERT_TRUE(receiver.wait_for([&] { return receiver.concurrent("") >= 5; }));
  for (auto& endpoint : healthy) shard.offer(commit(endpoint, numbered(50)));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(receiver.wait_for_count("/ok" + std::to_string(i), 50));
  db.wait_for("select count(*) from queue where bucket >= 0 and tenant_id = 'acme'", "0");
  for (int i = 0; i < 5; ++i) receiver.answer("/hang" + std::to_string(i), {});
}

TEST_F(SendingTest, ALeaseThatRanOutStopsSendingAndARenewedOneGoesOn) {
  auto endpoint = make_endpoint("acme", receiver.url("/in"));
  TestShard shard(db, ids, keys);
  shard.take_all();
  shard.offer(commit(endpoint, {"before"}));
  wait_until_drained();
  shard.let_lease_run_out();
  shard.offer(commit(endpoint, numbered(10)));
  for (int turn = 0; turn < 20; ++turn) shard.call([](Shard&) {});
  EXPECT_EQ(receiver.count("/in"), 1u);
  shard.renew();
  shard.call([](Shard& each) { each.lease_renewed(); });
  wait_until_drained();
  EXPECT_EQ(receiver.count("/in"), 11u);
}

TEST_F(SendingTest, WhatWasHeldUnderALostLeaseIsNotSentUnderTheNextOne) {
  auto endpoint = make_endpoint("acme", receiver.url("/in"));
  TestShard shard(db, ids, keys);
  shard.take_all();
  shard.offer(commit(endpoint, {"before"}));
  wait_until_drained();
  shard.let_lease_run_out();
  shard.offer(commit(endpoint, {"after"}));
  std::promise<int> under_way;
  shard.call([&](Shard& each) {
    each.lease_renewed();  // it will choose when this is over, before it hears of what follows
    shard.lease.end();
    shard.post([term = shard.lease.term()](Shard& late) { late.drop_everything(term); });
    shard.renew();
    shard.post([&under_way](Shard& late) { under_way.set_value(late.in_flight()); });
  });
  EXPECT_EQ(under_way.get_future().get(), 0) << "another node may serve the bucket by now";
  shard.take_all();
  wait_until_drained();
  EXPECT_EQ(receiver.count("/in"), 2u);
}

// The thread stands still, as it does while a process is stopped or a machine sleeps.
void stall(TestShard& shard) {
  shard.call([](Shard&) { std::this_thread::sleep_for(1200ms); });
}

TEST_F(SendingTest, AfterAStallNothingIsSentUntilTheLeaseIsConfirmed) {
  auto endpoint = make_endpoint("acme", receiver.url("/in"));
  TestShard shard(db, ids, keys);
  const auto until = base::BootClock::now() + 1h;
  shard.take_all();
  shard.offer(commit(endpoint, {"before"}));
  wait_until_drained();
  const auto rows = commit(endpoint, {"after"});
  shard.lease.renew({.sent_at = base::BootClock::now(), .until = until});
  stall(shard);
  shard.offer(rows);
  for (int turn = 0; turn < 20; ++turn) shard.call([](Shard&) {});
  EXPECT_EQ(receiver.count("/in"), 1u) << "the lease may be somebody else's by now, whatever the clock says";
  shard.renew();
  shard.call([](Shard& each) { each.lease_renewed(); });
  wait_until_drained();
  EXPECT_EQ(receiver.count("/in"), 2u);
}

TEST_F(SendingTest, ATimeOutAcrossAStallUsesUpNoAttempt) {
  receiver.answer("/in", {.hangs = true});
  auto endpoint = make_endpoint("acme", receiver.url("/in"),
                                [](registry::EndpointSettings& settings) { settings.timeout_ms = 1000; });
  TestShard shard(db, ids, keys);
  shard.take_all();
  shard.offer(commit(endpoint, {"x"}));
  ASSERT_TRUE(receiver.wait_for_count("/in", 1));
  stall(shard);
  receiver.answer("/in", {});
  wait_until_drained();
  EXPECT_EQ(db.sql("select string_agg(attempt || outcome, ',') from attempt"), "1delivered");
}

TEST_F(SendingTest, ADroppedBucketsResultsAreDroppedAndTheNextOwnerSendsAgain) {
  receiver.answer("/in", {.hangs = true});
  auto endpoint = make_endpoint("acme", receiver.url("/in"));
  TestShard shard(db, ids, keys);
  shard.take_all();
  shard.offer(commit(endpoint, numbered(5)));
  ASSERT_TRUE(receiver.wait_for_count("/in", 1)) << "the lane may be on its ramp";
  shard.drop_all();
  ShardOptions options;
  options.node_id = node_number(2);
  TestShard successor(db, ids, keys, options);
  successor.take_all();
  ASSERT_TRUE(receiver.wait_for([&] {
    const auto all = receiver.received("/in");
    return all.back().body == "0" && all.size() >= 2;
  })) << "the new owner begins with the first";
  receiver.answer("/in", {});
  wait_until_drained();
  EXPECT_EQ(db.sql("select outcome, attempt, node_id, count(*) from attempt group by 1, 2, 3"),
            "delivered|1|" + node_number(2).uuid.text() + "|5");
  for (int turn = 0; turn < 5; ++turn) shard.call([](Shard&) {});
}

TEST_F(SendingTest, StoppingWithAttemptsUnderWayLosesNothing) {
  receiver.answer("/in", {.hangs = true});
  auto endpoint = make_endpoint("acme", receiver.url("/in"));
  {
    TestShard shard(db, ids, keys);
    shard.take_all();
    shard.offer(commit(endpoint, numbered(30)));
    ASSERT_TRUE(receiver.wait_for_count("/in", 1));
  }
  EXPECT_EQ(live_rows(), "30");
  receiver.answer("/in", {});
  TestShard next(db, ids, keys);
  next.take_all();
  wait_until_drained();
  EXPECT_EQ(db.sql("select count(*) from attempt where outcome = 'delivered'"), "30");
}

TEST_F(SendingTest, ADatabaseThatGoesAndComesBackIsSurvived) {
  auto endpoint = make_endpoint("acme", receiver.url("/in"));
  TestShard shard(db, ids, keys);
  shard.take_all();
  for (int round = 0; round < 10; ++round) {
    shard.offer(commit(endpoint, numbered(20, std::to_string(round) + "-")));
    db.sql(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'postrider' and "
        "datname = current_database() and pid <> pg_backend_pid()");
  }
  wait_until_drained();
  EXPECT_EQ(db.sql("select count(*), count(distinct delivery_id) from attempt where outcome = 'delivered'"),
            "200|200");
}

}  // namespace
}  // namespace postrider::delivery
