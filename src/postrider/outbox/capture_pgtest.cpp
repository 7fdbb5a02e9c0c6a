// Change data capture of postrider's own outbox, against a real server.
#include "postrider/outbox/capture.hpp"

#include <signal.h>

#include "postrider/outbox/capture_plan.hpp"
#include "postrider/outbox/relay.hpp"
#include "postrider/outbox/same_database.hpp"
#include "postrider/outbox/slot_reader.hpp"
#include "postrider/publish/publish_testing.hpp"
#include "support/cluster.hpp"

namespace postrider::outbox {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

const bool kIsLogical = support::Cluster::want_logical();

// Relay and capture of one node.
class TestNode {
 public:
  TestNode(runtime::Loop& loop, const std::string& url, model::IdSource& ids, MoveLimits limits)
      : link(loop, {.connect = pg::ConnectOptions::engine(url), .pause_min = pg::Milliseconds(10)}),
        writer(link, ids, hand_over, metrics, {}),
        mover(link, writer, metrics.outbox("local"), limits),
        relay(loop, link, mover, metrics.outbox("local"), relay_options(url)),
        capture_writer(link, ids, hand_over, metrics, {}),
        taker(link, capture_writer, metrics.outbox("local"), limits),
        capture({loop, link, link, taker, metrics.capture("local")}, options(url, limits),
                [this] { return relay.is_active(); }) {
    link.start();
  }
  static RelayOptions relay_options(const std::string& url) {
    RelayOptions options;
    options.owner = "test";
    options.poll = 20ms;
    options.may_be_notified = false;
    options.listen.connect.url = url;
    return options;
  }
  static CaptureOptions options(const std::string& url, const MoveLimits& limits) {
    CaptureOptions options = capture_options("local", url, limits);
    options.look = 50ms;
    options.rest = 1h;
    options.mark = 1h;  // tests write it themselves
    return options;
  }
  void start() {
    relay.start();
    capture.start();
  }
  runtime::Task<void> stop() {
    auto captured = capture.stop();
    co_await captured;
    auto stopped = relay.stop();
    co_await stopped;
    auto closed = link.stop();
    co_await closed;
  }

  telemetry::Metrics metrics;
  publish::KeptHandOver hand_over;
  pg::Link link;
  publish::EventWriter writer;
  SameDatabaseMover mover;
  Relay relay;
  publish::EventWriter capture_writer;
  SameDatabaseTaker taker;
  Capture capture;
};

class CaptureTest : public publish::PublishTest {
 protected:
  CaptureTest() {
    support::SyncSql(db.superuser_url())("alter role postrider replication");
    make_tenant("acme");
    make_endpoint("acme");
    db.sql("select outbox_set_mode('cdc')");
  }
  ~CaptureTest() override { stop_all(); }
  void stop_all() {
    for (auto& each : nodes) run(each->stop());
    nodes.clear();
    db.wait_for("select count(*) from pg_replication_slots where active and database = current_database()",
                "0");
  }

  TestNode& node() {
    MoveLimits limits;
    limits.rows_max = 10;
    limits.retry_seconds = {0};
    nodes.push_back(std::make_unique<TestNode>(loop, db.url(), ids, limits));
    run(nodes.back()->link.wait_up(base::BootClock::now() + 30s));
    return *nodes.back();
  }
  TestNode& capturing() {
    TestNode& on = node();
    on.start();
    until("select state from outbox_slot", "on");
    return on;
  }
  void until(const std::string& sql, const std::string& wanted) {
    run(publish::until(loop, db, sql, wanted));
  }
  void until_published(int events) { until("select count(*) from event", std::to_string(events)); }
  std::string metric(const TestNode& of, const std::string& name) {
    const std::string text = of.metrics.text();
    const std::string line = "\n" + name + "{outbox=\"local\"} ";
    const size_t at = text.find(line);
    return at == std::string::npos
               ? ""
               : text.substr(at + line.size(), text.find('\n', at + 1) - at - line.size());
  }

  std::vector<std::unique_ptr<TestNode>> nodes;
};

TEST_F(CaptureTest, AnEmittedEventIsPublishedAndNoRowIsWritten) {
  auto& on = capturing();
  const std::string id = db.sql("select emit('acme', 'order.paid', '{\"n\": 1e400}'::json)");
  until_published(1);
  EXPECT_EQ(db.sql("select 'evt_' || replace(id::text, '-', '') from event"), id);
  EXPECT_THAT(db.sql("select body from event"), HasSubstr(",\"data\":{\"n\": 1e400}}"));
  run(on.stop());  // it is handed over a moment after it is committed
  EXPECT_EQ(on.hand_over.deliveries.size(), 1u);
  nodes.clear();
  // The table was never touched: its first row would have made a page.
  EXPECT_EQ(db.sql("select pg_relation_size('outbox')"), "0");
}

TEST_F(CaptureTest, TheArgumentsArriveInTheEvent) {
  capturing();
  db.sql(
      "select emit('acme', 'order.paid', '{\"k\":\"ü\\n\"}'::jsonb, id => 'order-1', version => 'v\"2',"
      " occurred_at => '2020-02-03 04:05:06.789+00', subject => 'Straße/1',"
      " traceparent => '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01')");
  until_published(1);
  EXPECT_EQ(
      db.sql("select outside_id, version, subject, traceparent, created_at at time zone 'UTC' from event"),
      "order-1|v\"2|Straße/1|00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01|2020-02-03 "
      "04:05:06.789");
}

TEST_F(CaptureTest, WhatRollsBackEmitsNothing) {
  capturing();
  db.sql("begin; select emit('acme', 'order.paid', '\"no\"'); rollback");
  db.sql(
      "begin; select emit('acme', 'order.paid', '\"yes\"'); savepoint s;"
      " select emit('acme', 'order.paid', '\"no\"'); rollback to s; commit");
  db.sql("select emit('acme', 'order.paid', '\"last\"')");
  until_published(2);
  EXPECT_EQ(db.sql("select count(*) from event where body like '%\"no\"%'"), "0");
}

TEST_F(CaptureTest, EventsStayInTheOrderOfCommits) {
  make_endpoint("acme", {.ordering = "strict"});
  capturing();
  support::SyncSql first(db.url()), second(db.url());
  first("begin; select emit('acme', 'order.paid', '2')");
  second("begin; select emit('acme', 'order.paid', '0')");
  second("select emit('acme', 'order.paid', '1')");
  second("commit");
  first("select emit('acme', 'order.paid', '3')");
  first("commit");
  for (int i = 4; i < 40; ++i) db.sql("select emit('acme', 'order.paid', '" + std::to_string(i) + "')");
  until_published(40);
  EXPECT_EQ(db.sql("select bool_and(e.body like '%\"data\":' || q.position - 1 || '}') from queue q"
                   " join event e on e.id = q.event_id where q.position > 0"),
            "t");
}

TEST_F(CaptureTest, ALargeTransactionArrivesWhole) {
  capturing();
  db.sql("select count(emit('acme', 'order.paid', to_json(n))) from generate_series(1, 1234) n");
  until_published(1234);
  EXPECT_EQ(db.sql("select count(distinct body) from event"), "1234");
}

TEST_F(CaptureTest, ALongTransactionElsewhereNeitherStallsNorIsMissed) {
  capturing();
  support::SyncSql slow(db.url()), writer(db.url());
  slow("begin; select emit('acme', 'order.paid', '\"late\"')");
  writer("begin; create table elsewhere (n int)");
  for (int i = 0; i < 25; ++i) db.sql("select emit('acme', 'order.paid', '1')");
  until_published(25);
  slow("commit");
  until_published(26);
  writer("rollback");
}

TEST_F(CaptureTest, TheSlotSendsAgainWhatWasNotConfirmedAndItIsSkipped) {
  capturing();
  db.sql("select count(emit('acme', 'order.paid', to_json(n))) from generate_series(1, 7) n");
  until_published(7);
  support::SyncSql(db.superuser_url())(
      "select pg_copy_logical_replication_slot(slot_name, 'kept') from pg_replication_slots"
      " where database = current_database()");
  db.sql("select count(emit('acme', 'order.paid', to_json(n))) from generate_series(8, 20) n");
  until_published(20);
  stop_all();
  // The copy stands before messages 8 to 20; it takes the place of the slot that was read.
  support::SyncSql owner(db.superuser_url());
  const std::string slot =
      owner("select 'postrider_' || oid from pg_database where datname = current_database()");
  owner("select pg_drop_replication_slot('" + slot + "')");
  owner("select pg_copy_logical_replication_slot('kept', '" + slot + "')");
  owner("select pg_drop_replication_slot('kept')");
  db.sql("delete from queue where bucket >= 0");  // as if they were delivered
  auto& next = capturing();
  db.sql("select emit('acme', 'order.paid', '21')");
  until("select count(*) from event where body like '%\"data\":21}'", "1");
  EXPECT_EQ(db.sql("select count(*) from event"), "21");
  EXPECT_EQ(db.sql("select count(*) from queue where bucket >= 0"), "1") << "none is sent again";
  run(next.stop());  // counted a moment after the commit
  EXPECT_THAT(next.metrics.text(),
              HasSubstr("webhook_relay_rows_total{outbox=\"local\",result=\"published\"} 1\n"));
  nodes.clear();
}

TEST_F(CaptureTest, WhatCannotBePublishedBecomesARowAndHoldsNothingUp) {
  capturing();
  db.sql("select emit('acme', 'order.paid', '1', id => 'order-1')");
  db.sql("select emit('nobody', 'order.paid', '2')");
  db.sql("select emit('acme', 'order.paid', '3', id => 'order-1')");
  db.sql("select emit('acme', 'order.paid', '4')");
  until_published(2);
  until(
      "select string_agg(tenant_id || data || attempts || (set_aside_at is not null), ' ' order by id) from "
      "outbox",
      "nobody25true acme35true");
  EXPECT_EQ(db.sql("select count(*) from webhook_outbox where status = 'set_aside'"), "2");
  make_tenant("nobody");
  db.sql("update outbox set attempts = 1, retry_at = now(), set_aside_at = null where tenant_id = 'nobody'");
  until_published(3);
}

TEST_F(CaptureTest, AMessageThatTheDatabaseRefusesIsFoundByHalving) {
  db.sql("alter table event add constraint no_four check (body not like '%\"data\":4}')");
  capturing();
  db.sql("select count(emit('acme', 'order.paid', to_json(n))) from generate_series(0, 8) n");
  until_published(8);
  until("select data, attempts > 0 from outbox", "4|t");
}

TEST_F(CaptureTest, OnlyEmitCanWriteMessagesThatCount) {
  auto& on = capturing();
  db.sql(
      "select pg_logical_emit_message(true, 'postrider', repeat('x', 32) ||"
      " '[1, \"01a1e288a0b07003a000b3431e44bbb6\", \"acme\", \"a.b\", null, null, null, null, null, 1]' || "
      "chr(10) || '1')");
  db.sql(
      "select pg_logical_emit_message(true, 'postrider', 'short'), pg_logical_emit_message(true, 'else', "
      "'x'),"
      " pg_logical_emit_message(false, 'postrider', 'outside of any transaction')");
  db.sql("select emit('acme', 'order.paid', '1')");
  until_published(1);
  EXPECT_EQ(metric(on, "webhook_capture_ignored_total"), "2");
}

TEST_F(CaptureTest, WhileNobodyReadsEmitWritesRows) {
  db.sql("select emit('acme', 'order.paid', '1')");
  EXPECT_EQ(db.sql("select count(*) from outbox"), "1") << "before the first relay";
  capturing();
  until_published(1);
  db.sql("select setval('outbox_capture', last_value - (7200::bigint << 32)) from outbox_capture");
  db.sql("begin; select emit('acme', 'order.paid', '2')");
  EXPECT_EQ(db.sql("select count(*) from outbox"), "1") << "the mark is out of date";
  db.sql("commit");
  until_published(2);
}

TEST_F(CaptureTest, ACopyOfTheDatabaseWritesRows) {
  capturing();
  // What a mark says of another server process or database.
  db.sql(
      "select setval('outbox_capture', (last_value >> 32 << 32) | ((last_value + 1) & 4294967295)) from "
      "outbox_capture");
  db.sql("begin; select emit('acme', 'order.paid', '2')");
  EXPECT_EQ(db.sql("select count(*) from outbox"), "1");
  db.sql("commit");
  until_published(1);
}

TEST_F(CaptureTest, BackInTableModeTheSlotGoesAndNothingIsLost) {
  capturing();
  support::SyncSql slow(db.url());
  slow("begin; select emit('acme', 'order.paid', '\"late\"')");
  db.sql("select outbox_set_mode('table')");
  until("select state from outbox_slot", "draining");
  db.sql("select emit('acme', 'order.paid', '\"row\"')");
  until_published(1);
  for (int look = 0; look < 2; ++look) {  // the slot is read beyond where it stood when the draining began
    const std::string here = db.sql("select pg_current_wal_insert_lsn()");
    db.sql("select pg_logical_emit_message(true, 'else', '')");
    until("select coalesce((select confirmed_flush_lsn >= '" + here +
              "' from pg_replication_slots where database = current_database()), true)",
          "t");
  }
  EXPECT_EQ(db.sql("select count(*) from pg_replication_slots where database = current_database()"), "1")
      << "a transaction that wrote a message has not ended";
  slow("commit");
  until("select state from outbox_slot", "off");
  EXPECT_EQ(db.sql("select count(*) from event"), "2");
  EXPECT_EQ(db.sql("select count(*) from pg_replication_slots where database = current_database()"), "0");
}

TEST_F(CaptureTest, TheSlotIsReadToItsEndBeforeItGoes) {
  capturing();
  support::SyncSql slow(db.url());
  slow("begin; select emit('acme', 'order.paid', '1')");
  const std::string sender =
      db.sql("select active_pid from pg_replication_slots where database = current_database()");
  db.sql("select outbox_set_mode('table')");
  until("select state from outbox_slot", "draining");
  ::kill(std::stoi(sender), SIGSTOP);  // the server does not come to send it
  slow("commit");
  const std::string committed = db.sql("select clock_timestamp()");
  // A look that begins so late follows one that knew of the commit.
  until(
      "select count(*) > 0 from pg_stat_activity where datname = current_database() and query like "
      "'%wal_level%'"
      " and query_start > '" +
          committed + "'::timestamptz + interval '200 ms' and pid <> pg_backend_pid()",
      "t");
  ::kill(std::stoi(sender), SIGCONT);
  until("select state from outbox_slot", "off");
  EXPECT_EQ(db.sql("select count(*) from event"), "1");
}

TEST_F(CaptureTest, OverTheLimitItFallsBackToRowsAndDropsTheSlot) {
  auto& on = capturing();
  db.sql("update outbox_setting set capture_bytes_max = 1000000");
  support::SyncSql slow(db.url());
  slow("begin; create table holds_the_slot (n int)");  // so the server cannot remove its log
  db.sql("create table bulk (t text)");
  db.sql("insert into bulk select repeat(md5(n::text), 30) from generate_series(1, 3000) n");
  until("select state from outbox_slot", "draining");
  EXPECT_GT(std::stod(metric(on, "webhook_capture_retained_bytes")), 1e6);
  EXPECT_EQ(metric(on, "webhook_capture_fallbacks_total"), "1");
  until("select tenant_id from event where type = 'outbox.capture_stopped'", "postrider");
  db.sql("delete from event");
  db.sql("begin; select emit('acme', 'order.paid', '1')");
  EXPECT_EQ(db.sql("select count(*) from outbox"), "1") << "rows, while it is over the limit";
  db.sql("commit");
  until_published(1);
  slow("commit");
  until("select state from outbox_slot", "fallback");
  EXPECT_EQ(db.sql("select count(*) from pg_replication_slots where database = current_database()"), "0");
  EXPECT_THAT(db.sql("select reason from outbox_slot"), HasSubstr("over its limit"));
}

TEST_F(CaptureTest, OverTheLimitWhatIsInTheSlotBecomesRows) {
  db.sql("alter table event add constraint nothing_now check (false) not valid");
  auto& on = capturing();
  support::SyncSql slow(db.url());
  slow("begin; select count(emit('acme', 'order.paid', to_json(n))) from generate_series(1, 33) n");
  db.sql("update outbox_setting set capture_bytes_max = 1");
  until("select state from outbox_slot", "draining");
  db.sql("alter table event drop constraint nothing_now");
  slow("commit");
  until("select state from outbox_slot", "fallback");
  until("select count(*) from event where tenant_id = 'acme'", "33");
  EXPECT_EQ(metric(on, "webhook_capture_spilled_total"), "33");
}

TEST_F(CaptureTest, ASlotThatIsGoneIsToldAndMadeAgain) {
  auto& on = capturing();
  db.sql(
      "select pg_terminate_backend(active_pid) from pg_replication_slots where database = "
      "current_database()");
  support::SyncSql owner(db.superuser_url());
  owner(
      "do $$ begin for i in 1..1000 loop begin perform pg_drop_replication_slot(slot_name) from "
      "pg_replication_slots"
      " where database = current_database(); return; exception when object_in_use then"
      " perform pg_terminate_backend(active_pid) from pg_replication_slots where database = "
      "current_database(); end;"
      " end loop; end $$");
  until("select tenant_id from event where type = 'outbox.capture_lost'", "postrider");
  until("select lost_at is not null and state = 'on' from outbox_slot", "t");
  EXPECT_EQ(metric(on, "webhook_capture_lost_slots_total"), "1");
  db.sql("delete from event");
  db.sql("select emit('acme', 'order.paid', '1')");
  until_published(1);
}

TEST_F(CaptureTest, TheNextRelayTakesTheSlotOver) {
  auto& first = capturing();
  auto& second = node();
  second.start();
  db.sql("select emit('acme', 'order.paid', '1')");
  until_published(1);
  run(first.stop());
  nodes.erase(nodes.begin());
  db.sql("select emit('acme', 'order.paid', '2')");
  until_published(2);
}

TEST_F(CaptureTest, WhoHasNotTheLeaseLeavesTheSlotAlone) {
  capturing();
  const std::string reader =
      db.sql("select active_pid from pg_replication_slots where database = current_database()");
  run(node().capture.run_once());
  db.sql("select emit('acme', 'order.paid', '1')");
  until_published(1);
  EXPECT_EQ(db.sql("select active_pid from pg_replication_slots where database = current_database()"),
            reader);
}

// As after a kill, or of a node that stands still: its connection lives on.
TEST_F(CaptureTest, AReaderThatDoesNotLetGoOfTheSlotIsEnded) {
  capturing();
  stop_all();
  support::SyncSql(db.superuser_url())(  // the server does not end it either
      "do $$ begin execute format('alter database %I set wal_sender_timeout = 0', current_database()); end "
      "$$");
  telemetry::Metrics metrics;
  pg::ConnectOptions connect;
  connect.url = db.url();
  SlotReader stalled(loop, {connect, 10, 1 << 20}, metrics.capture("local").ignored);
  run(stalled.open(db.sql("select slot_name from pg_replication_slots where database = current_database()"),
                   {}));
  db.sql("select emit('acme', 'order.paid', '1')");
  capturing();
  until_published(1);
}

TEST_F(CaptureTest, TheSlotIsToldOnlyAfterTheCommit) {
  capturing();
  const std::string reader =
      db.sql("select active_pid from pg_replication_slots where database = current_database()");
  db.sql("alter table event rename to event_gone");
  db.sql("select emit('acme', 'order.paid', '1')");
  until("select active_pid is distinct from " + reader +
            " from pg_replication_slots where database = current_database()",
        "t");  // it has failed, and begins anew
  stop_all();
  db.sql("alter table event_gone rename to event");
  capturing();
  until_published(1);
}

TEST_F(CaptureTest, WithoutTheRightToReplicateItSaysSo) {
  support::SyncSql owner(db.superuser_url());
  owner("alter role postrider noreplication");
  node().start();
  until("select state from outbox_slot", "impossible");
  EXPECT_THAT(db.sql("select reason from outbox_slot"), HasSubstr("no replication slot: "));
  db.sql("select emit('acme', 'order.paid', '1')");
  until_published(1);
}

TEST_F(CaptureTest, HowFarBehindTheSlotIsCanBeSeen) {
  auto& on = node();
  run(on.relay.run_once());
  run(on.capture.run_once());  // makes the slot
  db.sql("create table bulk (t text)");
  db.sql("insert into bulk select repeat(md5(n::text), 30) from generate_series(1, 1000) n");
  db.sql("select emit('acme', 'order.paid', '1')");
  run(on.capture.run_once());
  EXPECT_GT(std::stod(metric(on, "webhook_capture_behind_bytes")), 1e5);
  EXPECT_GT(std::stod(metric(on, "webhook_capture_retained_bytes")), 1e5);
  on.start();
  until_published(1);
  until(
      "select confirmed_flush_lsn > '0/0' and pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn) < "
      "100000"
      " from pg_replication_slots where database = current_database()",
      "t");
}

}  // namespace
}  // namespace postrider::outbox
