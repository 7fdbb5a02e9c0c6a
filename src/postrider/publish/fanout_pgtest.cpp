#include "postrider/publish/fanout.hpp"

#include "postrider/publish/publish_testing.hpp"

namespace postrider::publish {
namespace {

using testing::EndsWith;

class WideFanoutTest : public PublishTest {
 protected:
  WideFanoutTest() {
    make_tenant("wide");
    for (int i = 0; i < 25; ++i)
      make_endpoint("wide", {.patterns = i % 2 == 0 ? "{*,invoice.*}" : "{invoice.paid}"});
    make_endpoint("wide", {.patterns = "{order.*}"});
    make_endpoint("wide", {.status = "disabled"});
    make_endpoint("wide", {.ordering = "strict"});
  }

  std::unique_ptr<WideFanout> fanout(TestPublisher& on) {
    return std::make_unique<WideFanout>(loop, on.link, on.handoff,
                                        WideFanoutOptions{.node_id = {}, .chunk_endpoints = 10});
  }

  PublisherOptions wide_from_ten() { return {.wide_endpoints = 10}; }
};

TEST_F(WideFanoutTest, AWideEventIsAnsweredAtOnceAndFannedOutInChunks) {
  auto& on = publisher(wide_from_ten());
  const auto answer = publish(on, event("wide"));
  EXPECT_THAT(text_of(answer), EndsWith(R"("deliveries":26})"));
  EXPECT_EQ(live_rows(), "0");
  EXPECT_EQ(db.sql("select count(*) from fanout_task"), "1");

  const auto service = fanout(on);
  EXPECT_TRUE(run(service->fan_out_chunk()));
  EXPECT_EQ(live_rows(), "10");
  EXPECT_TRUE(run(service->fan_out_chunk()));
  EXPECT_TRUE(run(service->fan_out_chunk()));
  EXPECT_FALSE(run(service->fan_out_chunk()));
  EXPECT_EQ(live_rows("count(*), count(distinct endpoint_id), count(*) filter (where position = 1)"),
            "26|26|1");
  EXPECT_EQ(db.sql("select count(*) from fanout_task"), "0");
  EXPECT_EQ(db.sql("select count(*) from publish_log"), "3");
  EXPECT_EQ(on.handoff.deliveries.size(), 26u);
  EXPECT_EQ(on.handoff.deliveries[25].event->body, db.sql("select body from event"));
}

TEST_F(WideFanoutTest, EndsWhenTheLastChunkIsExactlyFull) {
  make_tenant("even");
  for (int i = 0; i < 20; ++i) make_endpoint("even");
  auto& on = publisher(wide_from_ten());
  ASSERT_TRUE(is_new(publish(on, event("even"))));
  const auto service = fanout(on);
  while (run(service->fan_out_chunk())) {
  }
  EXPECT_EQ(live_rows(), "20");
  EXPECT_EQ(db.sql("select count(*) from fanout_task"), "0");
}

TEST_F(WideFanoutTest, TenantsTakeTurns) {
  for (const char* tenant : {"another", "zebra"}) {
    make_tenant(tenant);
    for (int i = 0; i < 20; ++i) make_endpoint(tenant);
  }
  auto& on = publisher(wide_from_ten());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(is_new(publish(on, event("wide"))));
  for (const char* tenant : {"zebra", "another"}) ASSERT_TRUE(is_new(publish(on, event(tenant))));
  const auto service = fanout(on);
  for (int turn = 1; turn <= 2; ++turn) {
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(run(service->fan_out_chunk()));
    const std::string rows = std::to_string(10 * turn);
    for (const char* tenant : {"another", "wide", "zebra"})
      EXPECT_EQ(live_rows("count(*) filter (where tenant_id = '" + std::string(tenant) + "')"), rows)
          << tenant;
  }
  while (run(service->fan_out_chunk())) {
  }
  EXPECT_EQ(live_rows(), "118");
  EXPECT_EQ(db.sql("select count(*) from fanout_task"), "0");
}

TEST_F(WideFanoutTest, AnotherNodeGoesOnWhereOneStoppedAndNothingIsQueuedTwice) {
  auto& dying = publisher(wide_from_ten());
  auto& other = publisher(wide_from_ten());
  ASSERT_TRUE(is_new(publish(dying, event("wide"))));
  const auto first = fanout(dying);
  ASSERT_TRUE(run(first->fan_out_chunk()));

  // Delivered meanwhile, so a repeated row would not even conflict.
  db.sql("delete from queue where bucket >= 0");
  // The node is cut off in the middle of its second chunk.
  support::SyncSql locker(db.url());
  locker("begin; lock table publish_log in share mode");
  struct Cut {
    static runtime::Task<void> chunk(WideFanout& service, bool& has_failed) {
      try {
        co_await service.fan_out_chunk();
      } catch (const pg::Error&) {
        has_failed = true;
      }
    }
    static runtime::Task<void> cut(WideFanout& service, support::Database& db,
                                   runtime::Task<void> until_blocked) {
      runtime::TaskGroup group;
      bool has_failed = false;
      group.spawn(chunk(service, has_failed));
      co_await until_blocked;
      db.sql(
          "select pg_terminate_backend(pid) from pg_locks where not granted and relation = "
          "'publish_log'::regclass");
      co_await group.join();
      EXPECT_TRUE(has_failed);
    }
  };
  run(Cut::cut(*first, db, until(loop, db, waiting_for("publish_log"), "1")));
  locker("commit");
  EXPECT_EQ(live_rows(), "0");

  const auto second = fanout(other);
  while (run(second->fan_out_chunk())) {
  }
  EXPECT_EQ(live_rows("count(*), count(distinct endpoint_id)"), "16|16");
  EXPECT_EQ(other.handoff.deliveries.size(), 16u);
}

TEST_F(WideFanoutTest, AnEventOfAnOrderedTenantQueuesBehindAWideOne) {
  auto& wide = publisher(wide_from_ten());
  auto& narrow = publisher({.wide_endpoints = 1000});
  ASSERT_TRUE(is_new(publish(wide, event("wide"))));
  ASSERT_TRUE(is_new(publish(narrow, event("wide"))));
  EXPECT_EQ(db.sql("select count(*) from fanout_task"), "2");
  const auto service = fanout(wide);
  while (run(service->fan_out_chunk())) {
  }
  EXPECT_EQ(
      db.sql(
          "select count(*) from queue q join event e on e.id = q.event_id where position > 0 and position <> "
          "(select count(*) from event o where o.id <= e.id)"),
      "0");
  ASSERT_TRUE(is_new(publish(narrow, event("wide"))));
  EXPECT_EQ(live_rows(), "78");
}

TEST_F(WideFanoutTest, TheServiceWorksUntilNothingIsLeft) {
  auto& on = publisher(wide_from_ten());
  const auto service = fanout(on);
  on.publisher.on_wide([&service] { service->notify(); });
  service->start();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(is_new(publish(on, event("wide"))));
  run(until(loop, db, "select count(*) from fanout_task", "0"));
  run(service->stop());
  EXPECT_EQ(live_rows(), "130");
  EXPECT_EQ(on.handoff.deliveries.size(), 130u);
}

}  // namespace
}  // namespace postrider::publish
