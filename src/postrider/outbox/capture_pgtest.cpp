// Change data capture of postrider's own outbox: the path of an event.
#include "postrider/outbox/capture_testing.hpp"

namespace postrider::outbox {
namespace {

using testing::HasSubstr;

TEST_F(CaptureTest, AnEmittedEventIsPublishedAndNoRowIsWritten) {
  auto& on = capturing();
  const std::string id = db.sql("select emit('acme', 'order.paid', '{\"n\": 1e400}'::json)");
  until_published(1);
  EXPECT_EQ(db.sql("select 'evt_' || replace(id::text, '-', '') from event"), id);
  EXPECT_THAT(db.sql("select body from event"), HasSubstr(",\"data\":{\"n\": 1e400}}"));
  run(on.stop());  // it is published a moment after its commit
  EXPECT_EQ(on.handoff.deliveries.size(), 1u);
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
      db.sql("select public_id, version, subject, traceparent, created_at at time zone 'UTC' from event"),
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

// A message that carries emit()'s proof: the owner of the database can read the key.
std::string forged(const std::string& bytes) {
  return "with k as (select capture_key as key, " + bytes +
         " as message from outbox_setting) select pg_logical_emit_message(true, 'postrider',"
         " sha256(key || sha256(key || message)) || message) from k";
}
std::string head_and_data(const std::string& head, const std::string& data = "1") {
  return "convert_to($head$" + head + "$head$ || chr(10) || $data$" + data + "$data$, 'UTF8')";
}

TEST_F(CaptureTest, ForgedMessagesAreSetAsideAndTheOthersArrive) {
  auto& on = capturing();
  const std::string id = "\"01a1e288a0b07003a000b3431e44bbb6\"";
  const std::string nulls = "null, null, null, null, null, 1700000000000000]";
  db.sql("select emit('acme', 'order.paid', '1')");
  db.sql(forged(head_and_data("[901, " + id + ", \"postrider\", \"endpoint.disabled\", " + nulls)));
  db.sql(forged(head_and_data("[902, " + id + ", \"acme\", \"a\\r\\nb\", " + nulls)));
  db.sql(forged(
      head_and_data("[903, " + id + ", \"acme\", \"a.b\", \"x\\r\\ny: z\", null, null, null, null, 1]")));
  db.sql(forged(
      head_and_data("[904, " + id + ", \"acme\", \"a.b\", null, null, null, \"a\\u0000b\", null, 1]")));
  db.sql(forged(head_and_data("[905, " + id + ", \"acme\", \"a.b\", null, null, null, null, \"x\\ny\", 1]")));
  db.sql(forged(head_and_data("[906, " + id +
                              ", \"acme\", \"a.b\", null, null, 9223372036854775807, null, null,"
                              " -9223372036854775808]")));
  db.sql(forged(head_and_data("[907, " + id + ", \"acme\", \"a.b\", " + nulls, "no json")));
  db.sql(forged("convert_to('[908, " + id + ", \"acme\", \"a.b\", " + nulls +
                "' || chr(10), 'UTF8') || '\\xff00fe'"));
  db.sql(forged("convert_to('[909, " + id + ", \"acme\", \"' || repeat('a.', 500000) || 'a\", " + nulls +
                "' || chr(10) || '1', 'UTF8')"));
  db.sql(forged(head_and_data("[910]")));
  db.sql(forged("'no line feed'::bytea"));
  db.sql("select emit('acme', 'order.paid', '2')");
  until("select count(*) from event where tenant_id = 'acme'", "2");
  EXPECT_EQ(db.sql("select string_agg(id::text, ' ' order by id) from outbox where set_aside_at is not null"
                   " and last_error <> ''"),
            "901 902 903 904 905 906 907 908 909");
  EXPECT_EQ(db.sql("select count(*) from event where type = 'endpoint.disabled'"), "0");
  EXPECT_EQ(metric(on, "webhook_capture_ignored_total"), "2");
}

TEST_F(CaptureTest, AnEmptiedOrAlteredSlotTableIsAnErrorThatIsTriedAgain) {
  capturing();
  db.sql("delete from outbox_slot");
  db.sql("select emit('acme', 'order.paid', '1')");
  db.sql("insert into outbox_slot default values");
  until("select state from outbox_slot", "on");
  until_published(1);
  db.sql(
      "alter table outbox_slot alter column commit_lsn drop default, alter column commit_lsn type text,"
      " alter column message_lsn drop default, alter column message_lsn type text");
  db.sql("update outbox_slot set commit_lsn = 'nonsense'");
  db.sql("select emit('acme', 'order.paid', '2')");
  db.sql(
      "alter table outbox_slot alter column commit_lsn type pg_lsn using '0/0',"
      " alter column message_lsn type pg_lsn using '0/0'");
  until_published(2);
}

TEST_F(CaptureTest, TheOwnersLookAgainWhenATransactionWithAnUnknownResultCommitsLate) {
  auto& on = capturing();
  db.sql(publish::kSlowCommit);
  support::SyncSql locker(db.url());
  locker("begin; lock table gate in exclusive mode");
  db.sql("select emit('acme', 'order.paid', '{}'::jsonb)");
  until(publish::waiting_for("gate"), "1");
  on.link.connection().close();
  until("select count(*) > 0 from " + publish::kNotices, "t");
  db.sql("delete from publish_log");
  locker("commit");
  until(publish::kNoticed, "1");
  until_published(1);
}

}  // namespace
}  // namespace postrider::outbox
