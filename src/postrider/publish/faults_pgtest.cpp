// Publishing when the database fails around the commit.
#include "postrider/publish/publish_testing.hpp"
#include "support/cluster.hpp"
#include "support/stopped_process.hpp"

namespace postrider::publish {
namespace {

using Reason = Rejected::Reason;

struct Client {
  static runtime::Task<void> publish(TestPublisher& on, std::vector<NewEvent> events,
                                     std::vector<PublishResult>& answers) {
    answers = co_await on.publisher.publish_all(std::move(events));
  }
  // Publishes; while the publisher waits at the lock, does something to the database.
  static runtime::Task<void> disturbed(TestPublisher& on, std::vector<NewEvent> events,
                                       std::vector<PublishResult>& answers, runtime::Task<void> until_blocked,
                                       base::UniqueFunction<void()> disturb) {
    runtime::TaskGroup group;
    group.spawn(publish(on, std::move(events), answers));
    co_await until_blocked;
    disturb();
    co_await group.join();
  }
  static runtime::Task<void> lose_connection(TestPublisher& on, runtime::Task<void> until_blocked,
                                             runtime::Task<void> until_missed) {
    co_await until_blocked;
    on.link.connection().close();
    co_await until_missed;
  }
};

class PublishFaultTest : public PublishTest {
 protected:
  PublishFaultTest() {
    make_tenant("t1");
    make_endpoint("t1");
  }

  std::vector<NewEvent> events(bool with_keys) {
    std::vector<NewEvent> made(20, event("t1"));
    if (with_keys)
      for (size_t i = 0; i < made.size(); i += 2) made[i].id = "id" + std::to_string(i);
    return made;
  }
};

TEST_F(PublishFaultTest, RepeatsABatchThatWasCutOffBeforeItsCommit) {
  for (const bool with_keys : {false, true}) {
    db.sql("truncate event, event_key; delete from queue where bucket >= 0");
    auto& on = publisher();
    support::SyncSql locker(db.url());
    locker("begin; lock table publish_log in share mode");
    std::vector<PublishResult> answers;
    run(Client::disturbed(
        on, events(with_keys), answers, until(loop, db, waiting_for("publish_log"), "1"), [&] {
          db.sql(
              "select pg_terminate_backend(pid) from pg_locks where not granted and relation = "
              "'publish_log'::regclass");
          locker("commit");
        }));
    ASSERT_EQ(answers.size(), 20u);
    for (const auto& answer : answers) EXPECT_TRUE(is_new(answer)) << text_of(answer);
    EXPECT_EQ(db.sql("select count(*) from event"), "20");
    EXPECT_EQ(live_rows(), "20");
    EXPECT_EQ(on.handoff.deliveries.size(), 0u) << "the owners find them in the table";
    EXPECT_EQ(
        db.sql("select count(*) from queue q where bucket >= 0 and not exists (select from publish_log l "
               "where l.node_id = '00000000-0000-0000-0000-000000000000' and q.id between l.first_id and "
               "l.last_id and q.bucket = any (l.buckets))"),
        "0");
  }
}

// The backend goes on and commits although its client is gone; meanwhile the publisher comes back with the
// same events.
TEST_F(PublishFaultTest, DoesNotQueueAgainWhatWasCommittedUnnoticed) {
  db.sql(kSlowCommit);
  for (const bool with_keys : {false, true}) {
    db.sql("truncate event, event_key; delete from queue where bucket >= 0");
    auto& on = publisher();
    support::SyncSql locker(db.url());
    locker("begin; lock table gate in exclusive mode");
    std::vector<PublishResult> answers;
    run(Client::disturbed(on, events(with_keys), answers, until(loop, db, waiting_for("gate"), "1"), [&] {
      on.link.connection().close();
      locker("commit");
    }));
    for (const auto& answer : answers) {
      EXPECT_TRUE(is_new(answer)) << text_of(answer);
      EXPECT_THAT(text_of(answer), testing::EndsWith(R"("deliveries":1})"));
    }
    EXPECT_EQ(db.sql("select count(*) from event"), "20");
    EXPECT_EQ(live_rows(), "20");
    EXPECT_EQ(on.handoff.deliveries.size(), 0u);
    EXPECT_NE(
        db.sql("select count(*) from publish_log where node_id = '00000000-0000-0000-0000-000000000000'"),
        "0");
  }
}

// The owners looked, found nothing, and only then the cut-off transaction ends.
TEST_F(PublishFaultTest, TheOwnersLookAgainAtWhatWasCommittedAfterTheyLooked) {
  db.sql(kSlowCommit);
  const std::string without_node = "node_id = '00000000-0000-0000-0000-000000000000'";
  auto& on = publisher();
  std::vector<NewEvent> keyed = events(false);
  for (size_t i = 0; i < keyed.size(); ++i) keyed[i].id = "id" + std::to_string(i);
  support::SyncSql locker(db.url());
  locker("begin; lock table gate in exclusive mode");
  std::vector<PublishResult> answers;
  auto until_missed =
      Client::lose_connection(on, until(loop, db, waiting_for("gate"), "1"),
                              until(loop, db, "select count(*) from publish_log where " + without_node, "1"));
  run(Client::disturbed(on, keyed, answers, std::move(until_missed), [&] {
    db.sql("delete from publish_log");
    locker("commit");
  }));
  for (const auto& answer : answers) EXPECT_TRUE(is_new(answer)) << text_of(answer);
  EXPECT_EQ(live_rows(), "20");
  EXPECT_EQ(
      db.sql("select count(*) from queue q where bucket >= 0 and not exists (select from publish_log l "
             "where l." +
             without_node + " and q.id between l.first_id and l.last_id and q.bucket = any (l.buckets))"),
      "0");
}

// As from an outbox in another database, where ids were given in an order of their own.
TEST_F(PublishFaultTest, RecallsWhatWasCommittedUnnoticedWhateverTheOrderOfItsIds) {
  db.sql(kSlowCommit);
  auto& on = publisher();
  std::vector<NewEvent> given = events(false);
  for (auto at = given.rbegin(); at != given.rend(); ++at) at->given_id = model::EventId{ids.next()};
  support::SyncSql locker(db.url());
  locker("begin; lock table gate in exclusive mode");
  std::vector<PublishResult> answers;
  run(Client::disturbed(on, given, answers, until(loop, db, waiting_for("gate"), "1"), [&] {
    on.link.connection().close();
    locker("commit");
  }));
  for (const auto& answer : answers) EXPECT_TRUE(is_new(answer)) << text_of(answer);
  EXPECT_EQ(db.sql("select count(*) from event"), "20");
  EXPECT_EQ(live_rows(), "20");
}

TEST_F(PublishFaultTest, RunsABatchAgainWhenItsStatementWasCanceled) {
  make_endpoint("t1", {.ordering = "strict"});
  auto& on = publisher();
  ASSERT_TRUE(is_new(publish(on, event("t1"))));
  support::SyncSql other(db.url());
  other("begin; update endpoint_position set position = position");
  std::vector<PublishResult> answers;
  run(Client::disturbed(on, events(false), answers,
                        until(loop, db,
                              "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and "
                              "datname = current_database()",
                              "1"),
                        [&] {
                          other(
                              "select pg_cancel_backend(pid) from pg_stat_activity where wait_event_type = "
                              "'Lock' and datname = current_database(); rollback");
                        }));
  for (const auto& answer : answers) EXPECT_TRUE(is_new(answer)) << text_of(answer);
  EXPECT_EQ(live_rows("count(*), max(position)"), "42|21");
}

// A lock would not do: its holder is stopped too, perhaps before the one that waits for it.
constexpr const char* kHeldUntilTheServerStops =
    "create table first_server as select pg_postmaster_start_time() as started; "
    "create function sleep_in_first_server() returns trigger language plpgsql as $$ begin "
    "if (select started = pg_postmaster_start_time() from first_server) then perform pg_sleep(600); end if; "
    "return new; end $$; "
    "create trigger held before insert on publish_log for each row execute function sleep_in_first_server()";

TEST_F(PublishFaultTest, SaysSoWhenTheDatabaseStaysAwayAndTellsTheOwnersLater) {
  if (!support::Cluster::get().is_own()) GTEST_SKIP() << "needs a server that may be stopped";
  auto& on = publisher({.give_up_after = std::chrono::milliseconds(300)});
  ASSERT_TRUE(is_new(publish(on, event("t1"))));
  db.sql(kHeldUntilTheServerStops);
  std::vector<PublishResult> answers;
  run(Client::disturbed(
      on, events(false), answers,
      until(loop, db, "select count(*) from pg_stat_activity where wait_event = 'PgSleep'", "1"),
      [] { support::Cluster::get().stop(); }));
  for (const auto& answer : answers) EXPECT_TRUE(is_rejected(answer, Reason::unavailable)) << text_of(answer);
  EXPECT_TRUE(is_rejected(publish(on, event("t1")), Reason::unavailable));

  support::Cluster::get().start();
  EXPECT_ANY_THROW(db.sql("select 1")) << "this connection was lost, too";
  run(until(loop, db,
            "select count(*) from publish_log where node_id = '00000000-0000-0000-0000-000000000000'", "1"));
  run(on.link.wait_up(base::BootClock::now() + std::chrono::seconds(30)));
  EXPECT_TRUE(is_new(publish(on, event("t1"))));
  EXPECT_EQ(db.sql("select count(*) from event"), "2");
}

// The owners were notified, read the table, and found nothing: its backend was still waiting in the commit.
TEST_F(PublishFaultTest, TheOwnersLookAgainWhenATransactionThatWasGivenUpCommits) {
  db.sql(kSlowCommit);
  auto& on = publisher({.give_up_after = std::chrono::milliseconds(300)});
  support::SyncSql locker(db.url());
  locker("begin; lock table gate in exclusive mode");
  std::vector<PublishResult> answers;
  run(Client::disturbed(on, events(false), answers, until(loop, db, waiting_for("gate"), "1"),
                        [&] { on.link.connection().close(); }));
  for (const auto& answer : answers) EXPECT_TRUE(is_rejected(answer, Reason::unavailable)) << text_of(answer);
  db.sql("delete from publish_log");
  run(until(loop, db, "select count(*) > 0 from " + kNotices, "t"));
  db.sql("delete from publish_log");
  locker("commit");
  run(until(loop, db, kNoticed, "20"));
}

// Its backend has the statements, but has not begun: no snapshot shows that there is a transaction.
TEST_F(PublishFaultTest, AServerThatHangsIsGivenUpAtTheDeadlineAndItsCommitIsNoticedLater) {
  auto& on = publisher({.give_up_after = std::chrono::milliseconds(300)});
  ASSERT_TRUE(is_new(publish(on, event("t1"))));
  support::StoppedProcess backend(on.link.connection().server().backend_pid);
  for (const auto& answer : publish_all(on, events(false)))
    EXPECT_TRUE(is_rejected(answer, Reason::unavailable)) << text_of(answer);
  NewEvent next = event("t1");
  next.id = "next";
  while (is_rejected(publish(on, next), Reason::unavailable)) {
  }
  EXPECT_EQ(live_rows(), "2") << "the next one went out on another connection";
  run(until(loop, db, "select count(*) > 0 from " + kNotices, "t"));
  db.sql("delete from publish_log");
  backend.resume();
  run(until(loop, db, kNoticed, "20"));
  EXPECT_EQ(live_rows(), "22");
}

// With IDs: what is sent again after the 503 is published once, whatever becomes of the first transaction.
TEST_F(PublishFaultTest, WhatIsSentAgainAfterTheServerHungIsOneEvent) {
  auto& on = publisher({.give_up_after = std::chrono::milliseconds(300)});
  ASSERT_TRUE(is_new(publish(on, event("t1"))));
  support::StoppedProcess backend(on.link.connection().server().backend_pid);
  NewEvent sent = event("t1");
  sent.id = "once";
  ASSERT_TRUE(is_rejected(publish(on, sent), Reason::unavailable));
  while (is_rejected(publish(on, sent), Reason::unavailable)) {
  }
  const std::string pid = std::to_string(on.link.lost_backends().front().pid);
  backend.resume();
  db.wait_for("select count(*) from pg_stat_activity where pid = " + pid, "0");
  EXPECT_EQ(db.sql("select count(*) from event where public_id = 'once'"), "1");
  EXPECT_EQ(live_rows(), "2");
}

TEST_F(PublishFaultTest, WhoWaitsBehindAFailedFlushIsRefusedInTheSameTime) {
  PublisherOptions options{.give_up_after = std::chrono::milliseconds(500)};
  options.limits.items_max = 1;
  publishers.push_back(std::make_unique<TestPublisher>(loop, "host=/nowhere", ids, options));
  const auto begun = base::BootClock::now();
  const auto answers = publish_all(*publishers.back(), events(false));
  EXPECT_LT(base::BootClock::now() - begun, std::chrono::seconds(8)) << "one after the other takes 10";
  EXPECT_GE(base::BootClock::now() - begun, std::chrono::milliseconds(500));
  for (const auto& answer : answers) EXPECT_TRUE(is_rejected(answer, Reason::unavailable)) << text_of(answer);
}

}  // namespace
}  // namespace postrider::publish
