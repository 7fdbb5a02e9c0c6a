// A whole node, started and stopped while its database is not as it should be.
#include <future>

#include "postrider/delivery/engine_testing.hpp"

namespace postrider::delivery {
namespace {

struct EngineTest : testing::Test {
  ~EngineTest() override { node.stop(); }

  support::Database db;
  config::Config config = small_node_config();
  crypto::MasterKeys keys = *crypto::MasterKeys::parse(crypto::MasterKeys::generate());
  http::AddressGuard guard{http::GuardPolicy()};
  http::TlsContext tls{{.trust_system_store = false}};
  model::IdSource ids;
  telemetry::Metrics metrics;
  Engine node{{config, db.url(), db.url(), keys, guard, tls, ids, metrics}};
};

TEST_F(EngineTest, RegisteringMayTakeLongerThanItsShardsWaitBeforeTheyKeepHouse) {
  support::SyncSql other(db.url());
  other("begin; lock table node");
  auto started = std::async(std::launch::async, [this] { node.start(30s); });
  db.wait_for(
      "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
      " and application_name = 'postrider leases' and query_start < clock_timestamp() - interval '1.2 s'",
      "1");
  other("commit");
  started.get();
  db.wait_for("select count(*) from bucket_lease where owner is not null", std::to_string(support::buckets));
}

TEST_F(EngineTest, StopsWhileItsBrakesCannotBeRead) {
  std::promise<void> told;
  node.on_change([&told](const registry::Change&) { told.set_value(); });
  node.start(30s);
  db.sql("alter table brakes rename to brakes_away; select record_change('brakes', null)");
  told.get_future().wait();
  node.stop();
}

}  // namespace
}  // namespace postrider::delivery
