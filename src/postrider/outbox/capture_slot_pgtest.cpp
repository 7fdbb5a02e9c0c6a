// Change data capture: the slot is created, taken over, dropped and reported.
#include <signal.h>

#include "postrider/outbox/capture_testing.hpp"

namespace postrider::outbox {
namespace {

using testing::HasSubstr;

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
  // A mark of another server process or database.
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
  SlotReader stalled(loop, {connect, 10, 1 << 20}, CaptureMetrics(metrics, "local").ignored);
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
  run(on.relay.relay_now());
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
