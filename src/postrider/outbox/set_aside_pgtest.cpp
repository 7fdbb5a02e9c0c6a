// publish() and emit() with invalid arguments, where they keep the caller's transaction: in postrider's own
// database and in another one.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "postrider/outbox/install.hpp"
#include "support/database.hpp"
#include "support/run.hpp"
#include "support/sync_sql.hpp"

namespace postrider::outbox {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct Invalid {
  const char* what;
  const char* arguments;  // in SQL
  const char* error;      // like
};

const std::vector<Invalid> kInvalid = {
    {"tenant null", "null, 'order.paid', '1'", "tenant must have%"},
    {"tenant empty", "'', 'order.paid', '1'", "tenant must have%"},
    {"tenant long", "repeat('x', 1000000), 'order.paid', '1'", "tenant must have%"},
    {"tenant with line feed", "E'a\\r\\nx: y', 'order.paid', '1'", "tenant must have%"},
    {"tenant reserved", "'postrider', 'order.paid', '1'", "the tenant postrider is reserved%"},
    {"type null", "'acme', null, '1'", "type must be%"},
    {"type empty", "'acme', '', '1'", "type must be%"},
    {"type long", "'acme', repeat('a.', 500000) || 'a', '1'", "type must be%"},
    {"id empty", "'acme', 'order.paid', '1', id => ''", "id must have%"},
    {"id long", "'acme', 'order.paid', '1', id => repeat('\u00e4', 500000)", "id must have%"},
    {"version empty", "'acme', 'order.paid', '1', version => ''", "version must have%"},
    {"version long", "'acme', 'order.paid', '1', version => repeat('v', 65)", "version must have%"},
    {"subject empty", "'acme', 'order.paid', '1', subject => ''", "subject must have%"},
    {"subject long", "'acme', 'order.paid', '1', subject => repeat('s', 1000000)", "subject must have%"},
    {"time", "'acme', 'order.paid', '1', occurred_at => 'infinity'", "occurred_at must be%"},
    {"data null", "'acme', 'order.paid', null::text", "data is required%"},
    {"data empty", "'acme', 'order.paid', ''", "data is not JSON%"},
    {"data no JSON", "'acme', 'order.paid', '{\"a\": nan}'", "data is not JSON%"},
    {"data with surrogate cut", "'acme', 'order.paid', '\"\\ud8'", "data is not JSON%"},
    {"data too deep", "'acme', 'order.paid', repeat('[', 200000)", "data is not JSON%"},
    {"key without end", "'acme', 'order.paid', '{\"' || repeat('k', 200000)", "data is not JSON%"},
    {"data large", "'acme', 'order.paid', to_json(repeat('x', 300000))",
     "data is 300002 bytes; the limit is 262144"},
    {"data very large", "'acme', 'order.paid', to_json(repeat('\u00e4', 1000000))", "data is 2000002 bytes%"},
    {"all", "null, null, null::text, '', '', '-infinity', '', ''", "tenant must have%"},
};

class SetAsideTest : public testing::TestWithParam<bool> {
 protected:
  SetAsideTest() : sql(db.superuser_url()) {
    if (GetParam()) {
      sql("drop schema postrider cascade");
      support::run(loop, install(loop, db.superuser_url()));
    }
    sql("create table business (id integer)");
  }
  // The server's message, or empty if it accepts the statement.
  std::string rejection(const std::string& statement) {
    try {
      sql(statement);
      return {};
    } catch (const std::exception& error) {
      return error.what();
    }
  }
  void set(const std::string& on_invalid) {
    sql("update postrider.outbox_setting set on_invalid = '" + on_invalid + "'");
  }

  runtime::Loop loop;
  support::Database db;
  support::SyncSql sql;
};
INSTANTIATE_TEST_SUITE_P(In, SetAsideTest, testing::Bool(), [](const testing::TestParamInfo<bool>& other) {
  return other.param ? "AnotherDatabase" : "PostridersOwnDatabase";
});

TEST_P(SetAsideTest, EachInvalidArgumentIsStoredWithItsErrorAndTheTransactionCommits) {
  for (const bool is_setting : {false, true}) {
    set(is_setting ? "set_aside" : "refuse");
    for (const char* call : {"publish", "emit"})
      for (const Invalid& invalid : kInvalid) {
        SCOPED_TRACE(
            fmt::format("{} {} {}", call, invalid.what, is_setting ? "by the setting" : "by the argument"));
        sql("truncate business, postrider.outbox");
        sql("begin");
        sql("insert into business values (1)");
        const std::string id = sql(fmt::format("select postrider.{}({}{})", call, invalid.arguments,
                                               is_setting ? "" : ", on_invalid => 'set_aside'"));
        sql("insert into business values (2)");
        sql("commit");
        EXPECT_EQ(sql("select count(*) from business"), "2");
        EXPECT_NE(id, "");
        EXPECT_EQ(
            sql(fmt::format("select count(*), count(*) filter (where last_error like '{}'),"
                            " bool_and(set_aside_at is not null and attempts = 0 and processed_at is null"
                            " and octet_length(last_error) <= 1000)"
                            " from postrider.outbox",
                            invalid.error)),
            "1|1|t")
            << sql("select last_error from postrider.outbox");
        EXPECT_EQ(sql("select greatest(length(tenant_id), length(type), length(public_id), length(version),"
                      " length(subject)) <= 300 and octet_length(data) <= 1048576 from postrider.outbox"),
                  "t")
            << "over-long values are clipped";
        EXPECT_EQ(id, sql("select coalesce(nullif(public_id, ''), 'evt_' || replace(event_id::text, '-', ''))"
                          " from postrider.outbox"));
      }
  }
}

TEST_P(SetAsideTest, ARollbackRemovesTheRow) {
  sql("begin");
  sql("select postrider.publish('', 'order.paid', 'no json', on_invalid => 'set_aside')");
  sql("rollback");
  EXPECT_EQ(sql("select count(*) from postrider.outbox"), "0");
}

TEST_P(SetAsideTest, TheDefaultAndAnExplicitRefuseFailTheTransaction) {
  for (const Invalid& invalid : kInvalid) {
    SCOPED_TRACE(invalid.what);
    EXPECT_NE(rejection(fmt::format("select postrider.publish({})", invalid.arguments)), "");
    set("set_aside");
    EXPECT_NE(
        rejection(fmt::format("select postrider.publish({}, on_invalid => 'refuse')", invalid.arguments)),
        "");
    set("refuse");
    EXPECT_NE(rejection(fmt::format("select postrider.publish({})", invalid.arguments)), "")
        << "the same session sees the change";
  }
  EXPECT_EQ(sql("select count(*) from postrider.outbox"), "0");
}

TEST_P(SetAsideTest, AnUnknownChoiceIsRefused) {
  EXPECT_THAT(rejection("select postrider.publish('acme', 'order.paid', '1', on_invalid => 'ignore')"),
              HasSubstr("postrider.publish: on_invalid must be 'refuse' or 'set_aside'"));
  EXPECT_THAT(rejection("update postrider.outbox_setting set on_invalid = 'ignore'"),
              HasSubstr("on_invalid"));
}

TEST_P(SetAsideTest, AValidEventIsAnOrdinaryRow) {
  set("set_aside");
  sql("select postrider.publish('acme', 'order.paid', '{\"a\": \"\\u0000\\ud800\"}', traceparent => 'no "
      "form')");
  sql("select postrider.publish('acme', 'order.paid', 'null', on_invalid => 'set_aside')");
  EXPECT_EQ(sql("select count(*) from postrider.outbox where set_aside_at is null and last_error is null"
                " and traceparent is null and cut_from_bytes is null"),
            "2");
}

TEST_P(SetAsideTest, DataOverOneMebibyteIsCutAndMarked) {
  const std::string call = "select postrider.publish('acme', 'order.paid', {}, on_invalid => 'set_aside')";
  sql(fmt::format(fmt::runtime(call), "to_json(repeat('x', 1048574))"));
  EXPECT_EQ(sql("select octet_length(data), cut_from_bytes from postrider.outbox"), "1048576|");
  sql("truncate postrider.outbox");
  sql(fmt::format(fmt::runtime(call), "to_json(repeat('x', 1048575))"));
  EXPECT_EQ(sql("select octet_length(data), cut_from_bytes from postrider.outbox"), "262144|1048577");
}

TEST_P(SetAsideTest, WhileInvalidEventsAreRefusedTheSettingIsNotRead) {
  sql("begin");
  sql("select postrider.publish('acme', 'order.paid', '1', id => 'order-1')");
  EXPECT_EQ(sql("select coalesce(seq_scan, 0) + coalesce(idx_scan, 0) from pg_stat_xact_user_tables"
                " where relname = 'outbox_setting'"),
            "0");
  sql("commit");
}

TEST_P(SetAsideTest, TheSettingSurvivesAnotherInstallation) {
  if (!GetParam()) return;
  set("set_aside");
  support::run(loop, install(loop, db.superuser_url()));
  EXPECT_THAT(sql("select postrider.publish('', 'order.paid', '1')"), StartsWith("evt_"));
}

TEST_P(SetAsideTest, AnInstallationReplacesFunctionsWithOtherArguments) {
  if (!GetParam()) return;
  for (const char* data : {"text", "json", "jsonb"})
    for (const char* name : {"publish", "emit"})
      sql(fmt::format(
          "create function postrider.{}(tenant text, type text, data {}, id text default null,"
          " version text default null, occurred_at timestamptz default null, subject text default null,"
          " traceparent text default null) returns text language sql as $$ select 'old' $$",
          name, data));
  EXPECT_THAT(rejection("select postrider.publish('acme', 'order.paid', '1'::json)"),
              HasSubstr("is not unique"));
  support::run(loop, install(loop, db.superuser_url()));
  sql("set role postrider_publisher");
  for (const char* data : {"text", "json", "jsonb"})
    for (const char* name : {"publish", "emit"})
      EXPECT_THAT(sql(fmt::format("select postrider.{}('acme', 'order.paid', '1'::{})", name, data)),
                  StartsWith("evt_"));
}

TEST_P(SetAsideTest, ARoleThatMayOnlyPublishSetsAsideAndCannotCallItByHand) {
  sql("do $$ begin create role postrider_publisher; exception when duplicate_object then null; end $$");
  sql("select postrider.grant_outbox()");
  sql("set role postrider_publisher");
  EXPECT_THAT(sql("select postrider.publish('', 'order.paid', 'no json', on_invalid => 'set_aside')"),
              StartsWith("evt_"));
  EXPECT_THAT(
      rejection("select postrider.outbox_set_aside('a', 'b', 'c', null, null, null, null, null, 'x')"),
      HasSubstr("permission denied"));
  EXPECT_THAT(rejection("select * from postrider.outbox"), HasSubstr("permission denied"));
}

}  // namespace
}  // namespace postrider::outbox
