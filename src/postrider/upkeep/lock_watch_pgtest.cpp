#include "postrider/upkeep/lock_watch.hpp"

#include "postrider/pg/blockers.hpp"
#include "postrider/upkeep/upkeep_testing.hpp"

namespace postrider::upkeep {
namespace {

struct LockWatchTest : UpkeepTest {
  LockWatchTest() : waiting(loop, named("postrider waiting")) {
    waiting.start();
    run(waiting.wait_up(base::BootClock::now() + 30s));
  }
  ~LockWatchTest() override { run(waiting.stop()); }

  pg::LinkOptions named(const std::string& application) {
    pg::LinkOptions options = link_options();
    options.connect.application_name = application;
    options.connect.lock_timeout = pg::Milliseconds(0);
    return options;
  }
  runtime::Task<void> change_tenant() {
    co_await waiting.connection().execute("update tenant set name = 'changed' where id = 'acme'");
  }
  runtime::Task<void> until_blocked() {
    runtime::Wakeup turn(loop);
    while (db.sql("select count(*) from pg_locks where not granted") == "0") co_await turn.wait_for(1ms);
  }
  static runtime::Task<void> end_of(runtime::TaskGroup& group) { co_await group.join(); }

  pg::Link waiting;
};

TEST_F(LockWatchTest, WhatWaitsAtTwoLooksInARowIsLoggedOnce) {
  LockWatch watch(loop, link);
  for (int time = 0; time < 2; ++time) {
    support::SyncSql person(db.url());
    person("begin; update tenant set name = 'left open' where id = 'acme'");
    runtime::TaskGroup group;
    group.spawn(change_tenant());
    run(until_blocked());
    EXPECT_EQ(run(watch.look()), 0) << "it may be over soon";
    EXPECT_EQ(run(watch.look()), 1);
    EXPECT_EQ(run(watch.look()), 0) << "it was logged";
    person("commit");
    run(end_of(group));
    EXPECT_EQ(run(watch.look()), 0);
  }
}

TEST_F(LockWatchTest, NamesTheSessionThatWaitsAndTheProcessAndRoleItWaitsFor) {
  support::SyncSql person(db.superuser_url());
  person("begin; update postrider.tenant set name = 'left open' where id = 'acme'");
  runtime::TaskGroup group;
  group.spawn(change_tenant());
  run(until_blocked());
  const std::vector<pg::Blocked> blocked = run(pg::blocked_sessions(link.connection()));
  ASSERT_EQ(blocked.size(), 1u);
  EXPECT_EQ(blocked[0].service, "postrider waiting");
  EXPECT_EQ(std::to_string(blocked[0].by_pid), person("select pg_backend_pid()"));
  EXPECT_EQ(blocked[0].by_role, "postgres");
  EXPECT_THAT(run(pg::lock_holders(link.connection())),
              testing::StartsWith("pid " + person("select pg_backend_pid()") + " (role postgres: "));
  person("rollback");
  run(end_of(group));
  EXPECT_TRUE(run(pg::blocked_sessions(link.connection())).empty());
}

}  // namespace
}  // namespace postrider::upkeep
