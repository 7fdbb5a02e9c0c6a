// The relay of postrider's own database against a real one.
#include "postrider/outbox/relay.hpp"

#include "postrider/outbox/same_database.hpp"
#include "postrider/publish/publish_testing.hpp"

namespace postrider::outbox {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// A relay with everything it needs, as on one node.
class TestRelay {
 public:
  TestRelay(runtime::Loop& loop, const std::string& url, model::IdSource& ids, RelayOptions options,
            publish::EventWriterOptions writer_options = {})
      : link(loop, {.connect = pg::ConnectOptions::engine(url), .pause_min = pg::Milliseconds(10)}),
        lease(link, relay_lease(options)),
        writer(link, ids, handoff, metrics, writer_options),
        drainer(loop, link, writer, OutboxMetrics(metrics, "local"), limits()),
        relay(loop, link, lease, drainer, OutboxMetrics(metrics, "local"),
              with_url(std::move(options), url)) {
    link.start();
  }
  DrainLimits limits() const {
    DrainLimits limits;
    limits.lease = &lease;
    limits.rows_max = 10;
    limits.retry_seconds = {0};
    return limits;
  }
  static RelayOptions with_url(RelayOptions options, const std::string& url) {
    options.listen.connect.url = url;
    options.owner = "test";
    return options;
  }
  runtime::Task<void> stop() {
    co_await relay.stop();
    co_await writer.stop();
    co_await link.stop();
  }

  telemetry::Metrics metrics;
  publish::KeptHandoff handoff;
  pg::Link link;
  pg::SessionLease lease;
  publish::EventWriter writer;
  SameDatabaseDrainer drainer;
  Relay relay;
};

runtime::Task<void> until_asleep(runtime::Loop& loop, const Relay& relay) {
  runtime::Wakeup turn(loop);
  while (!relay.is_asleep()) co_await turn.wait_for(1ms);
}

class RelayTest : public publish::PublishTest {
 protected:
  RelayTest() {
    make_tenant("acme");
    make_endpoint("acme");
  }
  ~RelayTest() override {
    for (auto& each : relays) run(each->stop());
  }

  TestRelay& relay(RelayOptions options = {}, publish::EventWriterOptions writer = {}) {
    relays.push_back(std::make_unique<TestRelay>(loop, db.url(), ids, std::move(options), writer));
    run(relays.back()->link.wait_up(base::BootClock::now() + 30s));
    return *relays.back();
  }
  bool run_once(TestRelay& on) { return run(on.relay.relay_now()); }
  std::string published() { return db.sql("select count(*) from event where tenant_id <> 'postrider'"); }
  std::string waiting() { return db.sql("select count(*) from outbox"); }
  void until_holder_is_gone() {
    db.wait_for(
        "select count(*) from session_lease l join pg_stat_activity a on a.pid = l.backend_pid"
        " and a.backend_start = l.backend_start",
        "0");
  }
  // True if publish() sends a NOTIFY.
  bool hears_a_publish();

  std::vector<std::unique_ptr<TestRelay>> relays;
};

TEST_F(RelayTest, ACommittedRowBecomesItsEventAndIsHandedOver) {
  const std::string id = db.sql("select publish('acme', 'order.paid', '{\"n\": 1e400}'::json)");
  auto& on = relay();
  ASSERT_TRUE(run_once(on));
  EXPECT_EQ(waiting(), "0");
  EXPECT_EQ(db.sql("select 'evt_' || replace(id::text, '-', '') from event"), id);
  const std::string body = db.sql("select body from event");
  EXPECT_THAT(body, HasSubstr("\"id\":\"" + id + "\",\"type\":\"order.paid\",\"tenant_id\":\"acme\""));
  EXPECT_THAT(body, HasSubstr(",\"data\":{\"n\": 1e400}}"));
  ASSERT_EQ(on.handoff.deliveries.size(), 1u);
  EXPECT_EQ(on.handoff.deliveries[0].event->body, body);
  EXPECT_EQ(live_rows(), "1");
}

TEST_F(RelayTest, ARolledBackCallLeavesNothing) {
  db.sql("begin; select publish('acme', 'order.paid', '1'); rollback");
  auto& on = relay();
  ASSERT_TRUE(run_once(on));
  EXPECT_EQ(published(), "0");
}

TEST_F(RelayTest, TheArgumentsArriveInTheEvent) {
  db.sql(
      "select publish('acme', 'order.paid', '{}'::jsonb, id => 'order-1', version => 'v2',"
      " occurred_at => '2020-02-03 04:05:06+00', subject => 'order/1',"
      " traceparent => '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01')");
  ASSERT_TRUE(run_once(relay()));
  EXPECT_EQ(
      db.sql("select public_id, version, subject, traceparent, created_at at time zone 'UTC' from event"),
      "order-1|v2|order/1|00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01|2020-02-03 04:05:06");
  EXPECT_THAT(db.sql("select body from event"), HasSubstr("\"created_at\":\"2020-02-03T04:05:06Z\""));
  EXPECT_EQ(db.sql("select count(*) from event_key where kind = 'id' and key = 'order-1'"), "1");
}

TEST_F(RelayTest, TheSameIdAndContentTwiceIsOneEvent) {
  for (int i = 0; i < 2; ++i) db.sql("select publish('acme', 'order.paid', '1', id => 'order-1')");
  auto& on = relay();
  ASSERT_TRUE(run_once(on));
  db.sql("select publish('acme', 'order.paid', '1', id => 'order-1')");
  ASSERT_TRUE(run_once(on));
  EXPECT_EQ(published(), "1");
  EXPECT_EQ(waiting(), "0");
}

TEST_F(RelayTest, OtherContentUnderAUsedIdIsRefusedAndSetAsideAfterFiveAttempts) {
  db.sql("select publish('acme', 'order.paid', '1', id => 'order-1')");
  auto& on = relay();
  ASSERT_TRUE(run_once(on));
  db.sql("select publish('acme', 'order.paid', '2', id => 'order-1')");
  db.sql("select publish('acme', 'order.paid', '3')");
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(run_once(on));
    run(on.drainer.drain_failed());
  }
  EXPECT_EQ(published(), "2") << "the row behind it is not held up";
  EXPECT_EQ(db.sql("select attempts, set_aside_at is not null from outbox"), "5|t");
  EXPECT_THAT(db.sql("select last_error from outbox"), HasSubstr("already used with different content"));
}

TEST_F(RelayTest, ARowThatTheDatabaseRefusesIsFoundByHalving) {
  for (int i = 0; i < 9; ++i) db.sql("select publish('acme', 'order.paid', '" + std::to_string(i) + "')");
  db.sql("alter table event add constraint no_four check (body not like '%\"data\":4}')");
  auto& on = relay();
  ASSERT_TRUE(run_once(on));
  EXPECT_EQ(published(), "8");
  EXPECT_EQ(db.sql("select data, attempts > 0, last_error from outbox"),
            "4|t|the database rejects it (SQLSTATE 23514, no_four)");
}

TEST_F(RelayTest, AnUnknownTenantIsTriedAgainOrMade) {
  db.sql("select publish('newcomer', 'order.paid', '1')");
  ASSERT_TRUE(run_once(relay()));
  EXPECT_EQ(db.sql("select attempts > 0, last_error from outbox"), "t|there is no such tenant");
  run(relays.back()->stop());
  relays.clear();
  auto& generous = relay({}, {.create_tenants = true});
  ASSERT_TRUE(run_once(generous));
  EXPECT_EQ(published(), "1");
  EXPECT_EQ(waiting(), "0");
}

TEST_F(RelayTest, AnOldRowFindsItsPartitionMade) {
  db.sql("select publish('acme', 'order.paid', '1')");
  db.sql(
      "update outbox set event_id = ('016000000000' || substr(replace(event_id::text, '-', ''), 13))::uuid");
  ASSERT_TRUE(run_once(relay()));
  EXPECT_EQ(published(), "1");
  EXPECT_EQ(waiting(), "0");
}

TEST_F(RelayTest, ATransactionThatCommitsLateIsNeitherMissedNorWaitedFor) {
  support::SyncSql slow(db.url());
  slow("begin; select publish('acme', 'order.paid', '\"late\"')");
  db.sql("select publish('acme', 'order.paid', '\"early\"')");
  auto& on = relay({.full_pass = 1h});
  ASSERT_TRUE(run_once(on));
  EXPECT_EQ(published(), "1") << "an open transaction does not hold up the others";
  for (int i = 0; i < 25; ++i) db.sql("select publish('acme', 'order.paid', '1')");
  ASSERT_TRUE(run_once(on));
  EXPECT_EQ(published(), "26");
  slow("commit");
  ASSERT_TRUE(run_once(on));
  EXPECT_EQ(published(), "27") << "its transaction id lies below everything read so far";
}

TEST_F(RelayTest, TransactionsThatDoNotOverlapStayInOrder) {
  make_endpoint("acme", {.ordering = "strict"});
  for (int i = 0; i < 35; ++i) db.sql("select publish('acme', 'order.paid', '" + std::to_string(i) + "')");
  ASSERT_TRUE(run_once(relay()));
  EXPECT_EQ(db.sql("select bool_and(e.body like '%\"data\":' || q.position - 1 || '}') from queue q"
                   " join event e on e.id = q.event_id where q.position > 0"),
            "t");
}

TEST_F(RelayTest, ALockedRowIsLeftToTheNextFullPass) {
  db.sql("select publish('acme', 'order.paid', '1')");
  db.sql("select publish('acme', 'order.paid', '2')");
  support::SyncSql person(db.url());
  person("begin; select 1 from outbox where data = '1' for update");
  auto& on = relay({.full_pass = 0ms});
  ASSERT_TRUE(run_once(on));
  EXPECT_EQ(published(), "1");
  person("commit");
  ASSERT_TRUE(run_once(on));
  EXPECT_EQ(published(), "2");
}

TEST_F(RelayTest, OneRelayAtATimeAndTheNextTakesOverWhenItsSessionEnds) {
  auto& first = relay();
  auto& second = relay();
  ASSERT_TRUE(run_once(first));
  EXPECT_FALSE(run_once(second));
  db.sql("select publish('acme', 'order.paid', '1')");
  run(first.link.stop());
  until_holder_is_gone();
  EXPECT_TRUE(run_once(second));
  EXPECT_EQ(published(), "1");
}

TEST_F(RelayTest, ARelayThatStandsStillIsEnded) {
  auto& first = relay();
  auto& second = relay({.lease = 0ms});
  ASSERT_TRUE(run_once(first));
  EXPECT_FALSE(run_once(second));  // sees the beat, and that it does not move
  until_holder_is_gone();
  EXPECT_TRUE(run_once(second));
}

TEST_F(RelayTest, ARelayThatWasSupersededWritesNothingMore) {
  auto& first = relay();
  ASSERT_TRUE(run_once(first));
  db.sql("select publish('acme', 'order.paid', '1')");
  db.sql("update session_lease set epoch = epoch + 1");  // another relay, whose role may not end sessions
  Window window;
  window.begin(true);
  EXPECT_THROW(run(first.drainer.drain_fresh(window)), pg::Error);
  EXPECT_EQ(published(), "0");
  EXPECT_EQ(waiting(), "1");
}

TEST_F(RelayTest, ASupersededRelayNoticesAndWaitsItsTurn) {
  auto& first = relay({.poll = 5ms, .lease = 30ms});
  first.relay.start();
  run(publish::until(loop, db, "select backend_pid is not null from session_lease where name = 'relay'",
                     "t"));
  db.sql("update session_lease set epoch = epoch + 1, backend_pid = pg_backend_pid(), backend_start = null");
  db.sql("select publish('acme', 'order.paid', '1')");
  // The session that took it has ended, so the lease is free again.
  run(publish::until(loop, db, "select count(*) from event where tenant_id = 'acme'", "1"));
}

TEST_F(RelayTest, AHolderWithAnOpenTransactionIsNotWaitedFor) {
  auto& first = relay();
  ASSERT_TRUE(run_once(first));
  support::SyncSql stopped(db.url());  // a relay that was stopped in the middle of a transaction
  stopped(
      "update session_lease set epoch = epoch + 1, backend_pid = pg_backend_pid(), backend_start ="
      " (select backend_start from pg_stat_activity where pid = pg_backend_pid())");
  stopped("begin; select from session_lease for key share");
  auto& second = relay({.lease = 0ms});
  EXPECT_FALSE(run_once(second));
  until_holder_is_gone();
  EXPECT_TRUE(run_once(second));
}

TEST_F(RelayTest, NoAdvisoryLockOfAnotherSessionHoldsItUp) {
  support::SyncSql hostile(db.url());
  hostile("select pg_advisory_lock(8031453476610911596), pg_advisory_lock(8031453476610911603)");
  db.sql("select publish('acme', 'order.paid', '1')");
  EXPECT_TRUE(run_once(relay()));
  EXPECT_EQ(published(), "1");
}

TEST_F(RelayTest, WhoeverDiesAsleepDoesNotMakePublishNotifyForEver) {
  db.sql("select setval('outbox_idle_until', (extract(epoch from now()) * 1000)::bigint - 1)");
  EXPECT_FALSE(hears_a_publish());
  db.sql("select setval('outbox_idle_until', (extract(epoch from now()) * 1000)::bigint + 3600000)");
  EXPECT_TRUE(hears_a_publish());
}

TEST_F(RelayTest, PublishNotifiesOnlyWhileTheRelaySleeps) {
  auto& on = relay({.poll = 600s});
  on.relay.start();
  run(until_asleep(loop, on.relay));
  db.sql("select publish('acme', 'order.paid', '1')");
  run(publish::until(loop, db, "select count(*) from event", "1"));  // long before the next poll
}

TEST_F(RelayTest, ACommitThatSentNoNotifyBecauseTheRelayWasAwakeIsFoundSoon) {
  support::SyncSql application(db.url());
  application("begin; select publish('acme', 'order.paid', '1')");  // no relay sleeps now
  auto& on = relay({.poll = 600s});
  on.relay.start();
  run(until_asleep(loop, on.relay));
  application("commit");
  run(publish::until(loop, db, "select count(*) from event", "1"));  // long before the next poll
}

runtime::Task<void> until_more(runtime::Loop& loop, const std::vector<std::string>& heard, size_t than) {
  runtime::Wakeup turn(loop);
  while (heard.size() <= than) co_await turn.wait_for(1ms);
}
runtime::Task<void> until_heard(runtime::Loop& loop, const std::vector<std::string>& heard) {
  co_await until_more(loop, heard, 0);
}

bool RelayTest::hears_a_publish() {
  pg::ListenerOptions options;
  options.link.connect.url = db.url();
  options.channels = {"postrider_outbox"};
  pg::Listener listener(loop, options);
  std::vector<std::string> heard, is_listening;
  listener.on_listening([&] { is_listening.emplace_back("yes"); });
  listener.on_notification([&](std::string_view, std::string_view payload) { heard.emplace_back(payload); });
  listener.start();
  run(until_heard(loop, is_listening));
  db.sql("select publish('acme', 'order.paid', '1')");
  db.sql("notify postrider_outbox, 'later'");
  while (heard.empty() || heard.back() != "later") {
    const size_t before = heard.size();
    run(until_more(loop, heard, before));
  }
  run(listener.stop());
  return heard.front() != "later";
}

TEST_F(RelayTest, PublishNotifiesNobodyWhileNoRelaySleeps) {
  EXPECT_FALSE(hears_a_publish());
}

TEST_F(RelayTest, ARelayThatMustNotBeNotifiedPolls) {
  auto& on = relay({.poll = 5ms, .may_be_notified = false});
  on.relay.start();
  db.sql("select publish('acme', 'order.paid', '1')");
  run(publish::until(loop, db, "select count(*) from event", "1"));
  EXPECT_FALSE(on.relay.is_asleep());
}

// Nothing else makes the owners look: this relay may not have its lease again for a long time.
TEST_F(RelayTest, TheOwnersLookAgainWhenATransactionWithAnUnknownResultCommitsLate) {
  db.sql(publish::kSlowCommit);
  auto& on = relay({}, {.node_id = publish::some_node()});
  db.sql("select publish('acme', 'order.paid', '{}'::jsonb)");
  support::SyncSql locker(db.url());
  locker("begin; lock table gate in exclusive mode");
  on.relay.start();
  run(publish::until(loop, db, publish::waiting_for("gate"), "1"));
  on.link.connection().close();
  run(publish::until(loop, db, "select count(*) > 0 from " + publish::kNotices, "t"));
  db.sql("delete from publish_log");
  EXPECT_FALSE(on.relay.is_active());
  locker("commit");
  run(publish::until(loop, db, publish::kNoticed, "1"));
  EXPECT_EQ(published(), "1");
  EXPECT_EQ(waiting(), "0");
}

}  // namespace
}  // namespace postrider::outbox
