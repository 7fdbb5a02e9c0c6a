// Rows that break a rule, between rows that do not: in postrider's own outbox and in another database.
#include "postrider/outbox/install.hpp"
#include "postrider/outbox/other_database.hpp"
#include "postrider/outbox/publisher_sink.hpp"
#include "postrider/outbox/relay.hpp"
#include "postrider/outbox/same_database.hpp"
#include "postrider/publish/publish_testing.hpp"

namespace postrider::outbox {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

struct Hostile {
  const char* column;
  const char* value;  // an SQL expression
};

const std::vector<Hostile> kHostile = {
    {"tenant_id", "E'a\\r\\nb'"},
    {"tenant_id", "'postrider'"},
    {"tenant_id", "''"},
    {"tenant_id", "'.a'"},
    {"tenant_id", "'a\",\"data\":{},\"x\":\"'"},
    {"tenant_id", "repeat('x', 1000000)"},
    {"tenant_id", "null"},
    {"type", "'a..b'"},
    {"type", "E'a\\n'"},
    {"type", "'a\",\"tenant_id\":\"rival'"},
    {"type", "repeat('a.', 500000) || 'a'"},
    {"type", "null"},
    {"public_id", "E'x\\r\\ncontent-length: 0\\r\\n\\r\\nDELETE / HTTP/1.1\\r\\nx: '"},
    {"public_id", "''"},
    {"public_id", "repeat('x', 65)"},
    {"traceparent", "E'x\\ny'"},
    {"traceparent", "repeat('0', 1000000)"},
    {"version", "''"},
    {"version", "repeat('v', 65)"},
    {"subject", "''"},
    {"subject", "repeat('s', 1000000)"},
    {"occurred_at", "'infinity'"},
    {"occurred_at", "'-infinity'"},
    {"occurred_at", "'20000-01-01'"},
    {"created_at", "'infinity'"},
    {"created_at", "'4000-01-01 BC'"},
    {"created_at", "null"},
    {"event_id", "null"},
    {"data", "'no json'"},
    {"data", "''"},
    {"data", "repeat('[', 1000)"},
    {"data", "'1} , {\"a\":1'"},
    {"data", "null"},
    {"data", "'\"' || repeat('x', 17000000) || '\"'"},
};

// Statements that the owner of a database can always execute.
void disarm(support::SyncSql& sql) {
  sql("drop trigger outbox_event_form on postrider.outbox");
  for (const char* column : {"tenant_id", "type", "data", "event_id", "created_at"})
    sql("alter table postrider.outbox alter column " + std::string(column) + " drop not null");
}

// One hostile row after each good one.
void write_rows(support::SyncSql& sql) {
  for (const Hostile& hostile : kHostile) {
    sql("select postrider.publish('acme', 'order.paid', '1')");
    sql("with made as (select postrider.publish('acme', 'order.paid', '2') as id) select * from made");
    sql("update postrider.outbox set " + std::string(hostile.column) + " = " + hostile.value +
        " where id = (select max(id) from postrider.outbox)");
  }
  sql("select postrider.publish('acme', 'order.paid', '1')");
}

class HostileRowsTest : public publish::PublishTest {
 protected:
  HostileRowsTest() {
    make_tenant("acme");
    make_endpoint("acme");
  }
  void expect_set_aside(support::SyncSql& sql) {
    EXPECT_EQ(sql("select count(*) from postrider.outbox where set_aside_at is not null"),
              std::to_string(kHostile.size()));
    EXPECT_EQ(
        sql("select count(*) from postrider.outbox where processed_at is null and set_aside_at is null"),
        "0");
    EXPECT_EQ(sql("select count(*) from postrider.outbox where set_aside_at is not null and"
                  " (attempts <> 1 or last_error is null or octet_length(last_error) not between 8 and 400)"),
              "0")
        << sql("select string_agg(attempts || ' ' || coalesce(left(last_error, 500), ''), '; ') from "
               "postrider.outbox");
  }
  void expect_good_ones() {
    EXPECT_EQ(db.sql("select count(*) from event where tenant_id = 'acme'"),
              std::to_string(kHostile.size() + 1));
    EXPECT_EQ(db.sql("select count(*) from event where tenant_id not in ('acme', 'postrider')"), "0");
    EXPECT_EQ(db.sql("select count(*) from event where tenant_id = 'postrider' and type <> 'outbox.stuck'"),
              "0");
  }
  static DrainLimits limits() {
    DrainLimits limits;
    limits.rows_max = 10;
    limits.retry_seconds = {0};
    return limits;
  }
  static RelayOptions options(const std::string& url) {
    RelayOptions options;
    options.owner = "test";
    options.may_be_notified = false;
    options.listen.connect.url = url;
    return options;
  }
};

TEST_F(HostileRowsTest, InPostridersOwnOutboxAreSetAsideAndTheOthersArrive) {
  support::SyncSql sql(db.url());
  disarm(sql);
  write_rows(sql);
  telemetry::Metrics metrics;
  publish::KeptHandoff handoff;
  pg::Link link(loop, {.connect = pg::ConnectOptions::engine(db.url())});
  pg::SessionLease lease(link, relay_lease(options(db.url())));
  publish::EventWriter writer(link, ids, handoff, metrics, {.create_tenants = true});
  SameDatabaseDrainer drainer(loop, link, writer, OutboxMetrics(metrics, "local"), limits());
  Relay relay(loop, link, lease, drainer, OutboxMetrics(metrics, "local"), options(db.url()));
  link.start();
  run(link.wait_up(base::BootClock::now() + 30s));
  EXPECT_TRUE(run(relay.relay_now()));
  expect_set_aside(sql);
  expect_good_ones();
  EXPECT_EQ(db.sql("select count(*) from tenant"), "2") << "no tenant was created for one of them";
  run(relay.stop());
  run(link.stop());
}

// An outbox in another database, and this node's relay for it.
class OtherOutboxTest : public HostileRowsTest {
 protected:
  OtherOutboxTest() : there(other.superuser_url()) {
    there("drop schema postrider cascade");
    run(install(loop, other.superuser_url()));
    auto& on = publisher({.create_tenants = true});
    sink = std::make_unique<PublisherSink>(on.publisher);
    link = std::make_unique<pg::Link>(
        loop, pg::LinkOptions{.connect = pg::ConnectOptions::engine(other.superuser_url())});
    lease = std::make_unique<pg::SessionLease>(*link, relay_lease(options(other.superuser_url())));
    drainer = std::make_unique<OtherDatabaseDrainer>("billing", *link, *sink,
                                                     OutboxMetrics(metrics, "billing"), limits());
    relay = std::make_unique<Relay>(loop, *link, *lease, *drainer, OutboxMetrics(metrics, "billing"),
                                    options(other.superuser_url()));
    link->start();
    run(link->wait_up(base::BootClock::now() + 30s));
  }
  ~OtherOutboxTest() override {
    run(relay->stop());
    run(link->stop());
  }

  support::Database other;
  support::SyncSql there;
  telemetry::Metrics metrics;
  std::unique_ptr<PublisherSink> sink;
  std::unique_ptr<pg::Link> link;
  std::unique_ptr<pg::SessionLease> lease;
  std::unique_ptr<OtherDatabaseDrainer> drainer;
  std::unique_ptr<Relay> relay;
};

TEST_F(OtherOutboxTest, HostileRowsAreSetAsideAndTheOthersArrive) {
  disarm(there);
  write_rows(there);
  EXPECT_TRUE(run(relay->relay_now()));
  expect_set_aside(there);
  expect_good_ones();
  EXPECT_EQ(there("select count(*) from postrider.outbox where processed_at is not null"),
            std::to_string(kHostile.size() + 1));
}

TEST_F(OtherOutboxTest, ARowThatWasReleasedIsSetAsideAgainAndOneThatWasRepairedArrives) {
  there("select postrider.publish('acme', 'order.paid', '1')");
  there("drop trigger outbox_event_form on postrider.outbox");
  there("update postrider.outbox set traceparent = E'x\\r\\ny: z'");
  EXPECT_TRUE(run(relay->relay_now()));
  const std::string release =
      "update postrider.outbox set attempts = 1, retry_at = now(), set_aside_at = null";
  there(release);
  run(drainer->drain_failed());
  EXPECT_EQ(
      there("select set_aside_at is not null, last_error like 'traceparent must%' from postrider.outbox"),
      "t|t");
  there(release + ", traceparent = null");
  run(drainer->drain_failed());
  EXPECT_EQ(there("select processed_at is not null from postrider.outbox"), "t");
}

TEST_F(OtherOutboxTest, ATableThatWasAlteredOrEmptiedIsAnErrorAndNotTheEnd) {
  for (const char* change : {"alter table postrider.outbox alter column occurred_at type text",
                             "alter table postrider.outbox alter column event_id type text",
                             "alter table postrider.outbox alter column data type bytea using data::bytea",
                             "alter table postrider.outbox drop column subject",
                             "drop table postrider.session_lease", "drop table postrider.outbox cascade"}) {
    SCOPED_TRACE(change);
    there("select postrider.publish('acme', 'order.paid', '1', occurred_at => now())");
    there(std::string("begin; ") + change + "; commit");
    EXPECT_THROW(run(relay->relay_now()), pg::Error);
    EXPECT_TRUE(link->is_up());
    there("drop schema postrider cascade");
    run(install(loop, other.superuser_url()));
  }
}

TEST_F(OtherOutboxTest, TheTablesOfOneRowMayBeEmpty) {
  there("delete from postrider.session_lease");
  there("delete from postrider.outbox_setting");
  there("delete from postrider.outbox_slot");
  there("select postrider.publish('acme', 'order.paid', '1')");
  try {
    run(relay->relay_now());
  } catch (const pg::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("no lease"));
  }
  run(install(loop, other.superuser_url()));
  EXPECT_TRUE(run(relay->relay_now()));
  EXPECT_EQ(there("select processed_at is not null from postrider.outbox"), "t");
}

TEST_F(OtherOutboxTest, PublishAndEmitRefuseTheReservedTenant) {
  for (const char* call : {"publish", "emit"}) {
    try {
      there("select postrider." + std::string(call) + "('postrider', 'endpoint.disabled', '{}'::json)");
      ADD_FAILURE() << call;
    } catch (const std::exception& error) {
      EXPECT_THAT(error.what(), HasSubstr("reserved"));
    }
  }
  there("select postrider.publish('org:7@eu.1', 'a.b', '1')");
}

}  // namespace
}  // namespace postrider::outbox
