// Following the registry: every change is seen, also after the server was replaced by one that lacks the last
// ones.
#include "postrider/cluster/registry_follower.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/database.hpp"
#include "support/run.hpp"

namespace postrider::cluster {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

struct RegistryFollowerTest : testing::Test {
  RegistryFollowerTest()
      : link(loop, {.connect = pg::ConnectOptions::engine(db.url()), .pause_min = pg::Milliseconds(1)}) {
    RegistryEvents events;
    events.changed = [this](const registry::Change& change) {
      seen.push_back(change.tenant_id.value_or(""));
    };
    events.missed = [this] { ++missed; };
    watcher = std::make_unique<RegistryFollower>(loop, link, std::move(events));
    link.start();
    wait_up();
    support::run(loop, watcher->begin());
  }
  ~RegistryFollowerTest() override { support::run(loop, link.stop()); }

  void wait_up() { support::run(loop, link.wait_up(base::BootClock::now() + 30s)); }
  void change(const std::string& tenant) { db.sql("select record_change('tenant', '" + tenant + "')"); }
  std::vector<std::string> look() {
    seen.clear();
    support::run(loop, watcher->run_once());
    return seen;
  }
  void lose_connection() {
    db.sql("select pg_terminate_backend(" + std::to_string(link.connection().server().backend_pid) + ")");
    while (link.connection_number() == 1 || !link.is_up()) support::run(loop, turn());
  }
  runtime::Task<void> turn() {
    runtime::Wakeup wakeup(loop);
    co_await wakeup.wait_for(1ms);
  }

  support::Database db;
  runtime::Loop loop;
  pg::Link link;
  std::vector<std::string> seen;
  int missed = 0;
  std::unique_ptr<RegistryFollower> watcher;
};

TEST_F(RegistryFollowerTest, SeesEachChangeOnceInOrder) {
  change("a");
  change("b");
  EXPECT_THAT(look(), ElementsAre("a", "b"));
  EXPECT_THAT(look(), IsEmpty());
  EXPECT_EQ(missed, 0);
}

TEST_F(RegistryFollowerTest, AGapMeansThatSomethingWasMissed) {
  change("a");
  change("b");
  db.sql("delete from control_log where tenant_id = 'a'");
  EXPECT_THAT(look(), ElementsAre("b"));
  EXPECT_EQ(missed, 1);
}

TEST_F(RegistryFollowerTest, AServerThatLacksTheLastChangesIsFollowedFromWhereItIs) {
  change("a");
  change("lost");
  EXPECT_THAT(look(), ElementsAre("a", "lost"));
  // The state of a promoted standby that had not received the last change.
  db.sql(
      "delete from control_log where tenant_id = 'lost'; update registry_version set version = version - 1");
  lose_connection();
  look();
  EXPECT_EQ(missed, 1) << "everything is loaded afresh";
  change("instead");
  EXPECT_THAT(look(), ElementsAre("instead")) << "under a version that was seen before";
  EXPECT_EQ(missed, 1);
}

}  // namespace
}  // namespace postrider::cluster
