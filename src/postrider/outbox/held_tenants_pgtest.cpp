// A tenant that publishes too fast, beside others, in one outbox of another database.
#include "postrider/outbox/held_tenants.hpp"

#include <gtest/gtest.h>

#include "postrider/outbox/install.hpp"
#include "postrider/outbox/other_database.hpp"
#include "postrider/outbox/relay.hpp"
#include "support/database.hpp"
#include "support/run.hpp"
#include "support/sync_sql.hpp"

namespace postrider::outbox {
namespace {

using namespace std::chrono_literals;

// Takes as many events of the tenant `noisy` as it is allowed to, and all others.
class ThrottlingSink : public Sink {
 public:
  runtime::Task<std::vector<SinkResult>> send(std::vector<publish::NewEvent> events) override {
    std::vector<SinkResult> outcomes;
    for (const auto& event : events) outcomes.push_back(take(event));
    co_return outcomes;
  }

  size_t allowed = 0, offered = 0, calm = 0;
  std::vector<std::string> taken;  // data of `noisy`

 private:
  SinkResult take(const publish::NewEvent& event) {
    if (event.tenant_id != "noisy") {
      ++calm;
      return {SinkResult::Kind::published, {}};
    }
    ++offered;
    if (allowed == 0) return {SinkResult::Kind::throttled, "too fast"};
    --allowed;
    taken.emplace_back(event.data);
    return {SinkResult::Kind::published, {}};
  }
};

class HeldTenantsTest : public testing::Test {
 protected:
  HeldTenantsTest() : there(other.superuser_url()) {
    there("drop schema postrider cascade");
    support::run(loop, install(loop, other.superuser_url()));
    DrainLimits limits;
    limits.rows_max = 20;
    RelayOptions options;
    options.owner = "test";
    options.may_be_notified = false;
    options.poll = 1h;  // the end of a pause wakes it
    options.full_pass = 1h;
    link = std::make_unique<pg::Link>(
        loop, pg::LinkOptions{.connect = pg::ConnectOptions::engine(other.superuser_url())});
    lease = std::make_unique<pg::SessionLease>(*link, relay_lease(options));
    limits.lease = lease.get();
    drainer = std::make_unique<OtherDatabaseDrainer>("billing", *link, sink,
                                                     OutboxMetrics(metrics, "billing"), limits);
    relay =
        std::make_unique<Relay>(loop, *link, *lease, *drainer, OutboxMetrics(metrics, "billing"), options);
    link->start();
    support::run(loop, link->wait_up(base::BootClock::now() + 30s));
  }
  ~HeldTenantsTest() override {
    support::run(loop, relay->stop());
    support::run(loop, link->stop());
  }

  static std::string rows_of(const std::string& tenant, int first, int last) {
    return "select postrider.publish('" + tenant + "', 'a.b', to_json(n)) from generate_series(" +
           std::to_string(first) + ", " + std::to_string(last) + ") n";
  }
  std::string waiting(const std::string& tenant) {
    return there("select count(*) from postrider.outbox where processed_at is null and tenant_id = '" +
                 tenant + "'");
  }
  runtime::Task<void> until_taken(size_t count) {
    runtime::Wakeup turn(loop);
    while (sink.taken.size() < count) co_await turn.wait_for(1ms);
  }

  support::Database other;
  support::SyncSql there;
  runtime::Loop loop;
  telemetry::Metrics metrics;
  ThrottlingSink sink;
  std::unique_ptr<pg::Link> link;
  std::unique_ptr<pg::SessionLease> lease;
  std::unique_ptr<OtherDatabaseDrainer> drainer;
  std::unique_ptr<Relay> relay;
};

TEST_F(HeldTenantsTest, TheRowsOfOthersDoNotWaitBehindThousandsOfATenantThatIsThrottled) {
  there(rows_of("noisy", 1, 3'000));
  there(rows_of("calm", 1, 50));
  EXPECT_TRUE(support::run(loop, relay->relay_now()));
  EXPECT_EQ(sink.calm, 50u);
  EXPECT_EQ(waiting("calm"), "0");
  EXPECT_EQ(waiting("noisy"), "3000");
  EXPECT_LT(sink.offered, 200u) << "the others are not offered again and again";
  EXPECT_EQ(there("select max(attempts) from postrider.outbox"), "0") << "it uses no attempt";
}

TEST_F(HeldTenantsTest, ItsRowsArriveInOrderAsFastAsItIsAllowed) {
  there(rows_of("noisy", 1, 100));
  support::SyncSql late(other.superuser_url());
  EXPECT_TRUE(support::run(loop, relay->relay_now()));
  late("begin; " + rows_of("noisy", 101, 110));
  there(rows_of("noisy", 111, 120) + "; " + rows_of("calm", 1, 5));
  EXPECT_TRUE(support::run(loop, relay->relay_now()));
  EXPECT_EQ(sink.calm, 5u);
  late("commit");
  there(rows_of("noisy", 121, 300));
  relay->start();
  for (const size_t allowed : {7, 13, 280}) {
    const size_t wanted = sink.taken.size() + allowed;
    sink.allowed = allowed;
    support::run(loop, until_taken(wanted));
  }
  std::vector<std::string> in_order;
  for (int i = 1; i <= 300; ++i) in_order.push_back(std::to_string(i));
  EXPECT_EQ(sink.taken, in_order);
  EXPECT_EQ(there("select max(attempts) from postrider.outbox"), "0");
}

}  // namespace
}  // namespace postrider::outbox
