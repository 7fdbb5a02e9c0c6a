#include "postrider/replay/runner.hpp"

#include "postrider/replay/replay_testing.hpp"

namespace postrider::replay {
namespace {

class Runner : public ReplayTest {
 protected:
  static model::NodeId node(uint8_t n) {
    model::NodeId id;
    id.uuid.bytes[0] = n;
    return id;
  }
  std::unique_ptr<ReplayRunner> runner(uint8_t n = 1) {
    return std::make_unique<ReplayRunner>(
        loop, link, RunnerOptions{.node_id = node(n), .step_deliveries_max = 7, .step_rows_max = 10});
  }
  // Time passes as the runner waits, for at most this number of turns.
  void work(ReplayRunner& on, int turns = 1'000) {
    for (int i = 0; i < turns; ++i) {
      clock = std::max(clock + 1ms, run(on.run_once(clock)));
      if (db.sql("select count(*) from replay where status in ('queued', 'running')") == "0") return;
    }
  }
  void make_dead_letters(model::EndpointId endpoint, int count) {
    for (int i = 0; i < count; ++i) ended(make_event(), endpoint, "dead_letter");
  }
  std::string live() { return queued("count(*), count(distinct event_id), count(distinct id)"); }

  base::SteadyTime clock = base::BootClock::now();
};

TEST_F(Runner, ReplaysEveryDeadLetterOnceAndResolvesIt) {
  make_dead_letters(make_endpoint(), 25);
  const auto id = ask(last_hour(Scope::failed));
  EXPECT_EQ(find(id).status, "queued");
  work(*runner());
  EXPECT_EQ(live(), "25|25|25");
  const Replay done = find(id);
  EXPECT_EQ(done.status, "completed");
  EXPECT_EQ(done.matched, 25);
  EXPECT_EQ(done.queued, 25);
  EXPECT_EQ(db.sql("select count(*) from dead_letter where resolution = 'replayed'"), "25");
  EXPECT_EQ(
      db.sql("select count(*) from queue q where bucket >= 0 and not exists (select from publish_log p where "
             "q.id between p.first_id and p.last_id and q.bucket = any (p.buckets))"),
      "0");
}

TEST_F(Runner, WhatWasMissingIsReplayedOnceHoweverOftenItIsAskedFor) {
  for (int i = 0; i < 15; ++i) make_event();
  const auto endpoint = make_endpoint();
  make_endpoint();
  ended(make_event(), endpoint, "delivered");
  const auto first = ask(last_hour(Scope::missing));
  const auto second = ask(last_hour(Scope::missing));
  work(*runner());
  EXPECT_EQ(find(first).queued, 31);
  EXPECT_EQ(find(second).queued, 0);
  EXPECT_EQ(find(second).matched, 0);
  EXPECT_EQ(live(), "31|16|31");
}

TEST_F(Runner, AllSendsAgainWhatIsNotStillInTheQueue) {
  const auto endpoint = make_endpoint();
  const auto delivered = make_event(), pending = make_event();
  ended(delivered, endpoint, "delivered");
  db.sql("insert into queue (bucket, id, event_id, endpoint_id, tenant_id, due_at, created_at) values (" +
         std::to_string(model::bucket_of(endpoint, support::buckets)) + ", " +
         quoted(delivery_of(pending, endpoint).uuid) + ", " + quoted(pending.uuid) + ", " +
         quoted(endpoint.uuid) + ", 'acme', now(), now())");
  const auto id = ask(last_hour(Scope::all));
  work(*runner());
  EXPECT_EQ(find(id).queued, 1);
  EXPECT_EQ(db.sql("select event_id from queue where replay_id is not null"), delivered.uuid.text());
}

TEST_F(Runner, AnEventOfManyEndpointsIsContinuedBehindTheLastOne) {
  for (int i = 0; i < 23; ++i) make_endpoint();
  for (int i = 0; i < 3; ++i) make_event();
  const auto id = ask(last_hour(Scope::missing));
  work(*runner());
  EXPECT_EQ(find(id).queued, 69);
  EXPECT_EQ(live(), "69|3|69");
}

TEST_F(Runner, KeepsTheRate) {
  make_dead_letters(make_endpoint(), 12);
  ask(last_hour(Scope::failed), 2);
  const auto on = runner();
  const auto started = clock;
  while (db.sql("select status from replay") != "completed") {
    const auto before = clock;
    clock = std::max(clock + 1ms, run(on->run_once(clock)));
    const double most = 1 + 2 * std::chrono::duration<double>(before - started).count();
    EXPECT_LE(std::stod(queued()), most);
  }
  EXPECT_EQ(queued(), "12");
}

TEST_F(Runner, OneRunsPerTenantAndTheNextOneFollows) {
  make_dead_letters(make_endpoint(), 30);
  const auto first = ask(last_hour(Scope::failed), 1);
  const auto second = ask(last_hour(Scope::failed), 1);
  const auto on = runner();
  for (int i = 0; i < 5; ++i) clock = std::max(clock + 1ms, run(on->run_once(clock)));
  EXPECT_EQ(find(first).status, "running");
  EXPECT_EQ(find(second).status, "queued");
  const registry::Caller who = caller();
  EXPECT_TRUE(run(cancel_replay(link, who, {.tenant = "acme", .id = first})));
  EXPECT_FALSE(run(cancel_replay(link, who, {.tenant = "acme", .id = first})));
  for (int i = 0; i < 50; ++i) clock = std::max(clock + 1ms, run(on->run_once(clock)));
  EXPECT_EQ(find(first).status, "canceled");
  EXPECT_EQ(find(second).status, "running");
}

TEST_F(Runner, ARequestThatCommitsBehindALaterOneWaitsForIt) {
  make_dead_letters(make_endpoint(), 3);
  ask(last_hour(Scope::failed), 100);
  const auto on = runner();
  run(on->run_once(clock));
  ask(last_hour(Scope::failed), 100);
  db.sql(
      "update replay set id = (select left(r.id::text, 8) || '-0000-7000-8000-000000000000' from replay r"
      " where r.status = 'running')::uuid where status = 'queued'");
  EXPECT_EQ(db.sql("select string_agg(status, ',' order by id) from replay"), "queued,running");
  work(*on);
  EXPECT_EQ(db.sql("select string_agg(status, ',' order by id) from replay"), "completed,completed");
}

TEST_F(Runner, AnotherNodeGoesOnWhenTheLeaseIsOverAndNothingIsMadeTwice) {
  make_dead_letters(make_endpoint(), 40);
  const auto id = ask(last_hour(Scope::failed), 100);
  const auto dying = runner(1), other = runner(2);
  for (int i = 0; i < 20 && find(id).queued < 10; ++i)
    clock = std::max(clock + 1ms, run(dying->run_once(clock)));
  const auto made = find(id).queued;
  ASSERT_GT(made, 0);
  ASSERT_LT(made, 40);
  run(other->run_once(clock));
  EXPECT_EQ(db.sql("select runner from replay"), node(1).uuid.text());

  db.sql("update replay set lease_until = now() - interval '1 second'");
  work(*other);
  EXPECT_EQ(live(), "40|40|40");
  EXPECT_EQ(find(id).queued, 40);
  // The one that was cut off comes back and finds that it is over.
  run(dying->run_once(clock + 1s));
  EXPECT_EQ(live(), "40|40|40");
}

TEST_F(Runner, StrictEndpointsGetPositionsInOrder) {
  const auto strict = make_endpoint({.ordering = "strict"});
  make_dead_letters(strict, 17);
  db.sql("insert into endpoint_position values ('" + strict.uuid.text() + "', 5)");
  ask(last_hour(Scope::failed));
  work(*runner());
  EXPECT_EQ(queued("min(position), max(position), count(distinct position)"), "6|22|17");
  EXPECT_EQ(
      db.sql(
          "select count(*) from queue a join queue b on a.position < b.position and a.event_id > b.event_id "
          "where a.bucket >= 0 and b.bucket >= 0"),
      "0");
}

TEST_F(Runner, ACleanStopLeavesItToOthersAtOnce) {
  make_dead_letters(make_endpoint(), 10);
  ask(last_hour(Scope::failed), 1);
  const auto on = runner(1), other = runner(2);
  run(on->run_once(clock));
  run(on->stop());
  EXPECT_EQ(db.sql("select runner is null from replay"), "t");
  run(other->run_once(clock));
  EXPECT_EQ(db.sql("select runner from replay"), node(2).uuid.text());
}

}  // namespace
}  // namespace postrider::replay
