// Whole nodes that give each other buckets while something is being sent.
#include <future>

#include "postrider/delivery/engine_testing.hpp"

namespace postrider::delivery {
namespace {

struct TestNode {
  TestNode(support::Database& db, const crypto::MasterKeys& keys)
      : node({config, db.url(), db.url(), keys, guard, tls, ids, metrics}) {
    node.start(30s);
  }
  ~TestNode() { node.stop(); }

  std::string quoted_id() const { return quoted(node.id().uuid); }

  config::Config config = small_node_config();
  http::AddressGuard guard{
      http::GuardPolicy{.allow_http = true, .allow_networks = {*http::Network::parse("127.0.0.0/8")}}};
  http::TlsContext tls{{.trust_system_store = false}};
  model::IdSource ids;
  telemetry::Metrics metrics;
  Engine node;
};

struct RebalanceTest : DeliveryTest {
  RebalanceTest() { make_tenant("acme"); }

  std::string owned_by(const TestNode& node) {
    return "select count(*) from bucket_lease where owner = " + node.quoted_id();
  }
  // In a bucket that the first node gives to the second: it begins with the last ones.
  void commit_to_slow_moving_endpoint() {
    receiver.answer("/slow", {.hangs = true});
    auto endpoint =
        make_endpoint("acme", receiver.url("/slow"), [](auto& settings) { settings.timeout_ms = 60'000; });
    endpoint.bucket = support::buckets - 1;  // what its rows say counts
    commit(endpoint, {"x"});
  }
};

TEST_F(RebalanceTest, ABucketIsNotGivenAwayWhileAnAttemptIsOpen) {
  commit_to_slow_moving_endpoint();
  TestNode first(db, keys);
  ASSERT_TRUE(receiver.wait_for_count("/slow", 1));
  TestNode second(db, keys);
  db.wait_for("select count(*) >= 7 from bucket_lease where owner = " + second.quoted_id(), "t");
  receiver.answer("/slow", {});
  wait_until_drained();
  db.wait_for(owned_by(second), "8");
  EXPECT_EQ(receiver.count("/slow"), 1u);
  EXPECT_EQ(Metrics(first.metrics).late_settles_dropped.value(), 0);
}

TEST_F(RebalanceTest, AStopDoesNotWaitForABucketThatIsBeingGivenAway) {
  commit_to_slow_moving_endpoint();
  TestNode first(db, keys);
  ASSERT_TRUE(receiver.wait_for_count("/slow", 1));
  TestNode second(db, keys);
  db.wait_for(owned_by(second), "7");
  first.node.drain(0s);
  first.node.stop();
  db.wait_for(owned_by(second), std::to_string(support::buckets));
  receiver.answer("/slow", {});
  wait_until_drained();
}

TEST_F(RebalanceTest, NothingIsBeingSentAnyMoreWhenANodeLeaves) {
  receiver.answer("/slow", {.hangs = true});
  auto endpoint = make_endpoint("acme", receiver.url("/slow"));
  commit(endpoint, {"x"});
  TestNode leaving(db, keys);
  ASSERT_TRUE(receiver.wait_for_count("/slow", 1));
  EXPECT_EQ(Metrics(leaving.metrics).in_flight.value(), 1);
  support::SyncSql other(db.url());
  other("begin; select from bucket_lease for update");
  auto stopped = std::async(std::launch::async, [&leaving] { leaving.node.stop(); });
  db.wait_for(
      "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
      " and application_name = 'postrider leases'",
      "1");
  EXPECT_EQ(Metrics(leaving.metrics).in_flight.value(), 0);
  other("commit");
  stopped.get();
}

}  // namespace
}  // namespace postrider::delivery
