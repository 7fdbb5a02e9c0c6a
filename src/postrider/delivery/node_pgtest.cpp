// A whole node, started and stopped while its database is not as it should be.
#include "postrider/delivery/node.hpp"

#include <future>

#include "postrider/delivery/delivery_testing.hpp"

namespace postrider::delivery {
namespace {

struct NodeTest : testing::Test {
  NodeTest() {
    config.shards = 1;
    config.buckets = support::buckets;
    config.lease_seconds = 10;
    config.max_in_flight = 100;
    config.lane_rows_max = 100;
    config.buffer_bytes_max = 1 << 20;
    config.settle_batch_items_max = 100;
    config.breaker_failures = 5;
  }
  ~NodeTest() override { node.stop(); }

  support::Database db;
  config::Config config;
  crypto::MasterKeys keys = *crypto::MasterKeys::parse(crypto::MasterKeys::generate());
  http::AddressGuard guard{http::GuardPolicy()};
  http::TlsContext tls{{.trust_system_store = false}};
  model::IdSource ids;
  telemetry::Metrics metrics;
  Node node{{config, db.url(), db.url(), keys, guard, tls, ids, metrics}};
};

TEST_F(NodeTest, StopsWhileItsBrakesCannotBeRead) {
  std::promise<void> told;
  node.on_change([&told](const registry::Change&) { told.set_value(); });
  node.start(30s);
  db.sql("alter table brakes rename to brakes_away; select note_change('brakes', null)");
  told.get_future().wait();
  node.stop();
}

}  // namespace
}  // namespace postrider::delivery
