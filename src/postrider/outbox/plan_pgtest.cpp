// The relay reads its outbox by index from its cursor on, whatever state the table was in when the plan was
// made: otherwise each batch walks over all rows that were ever there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "postrider/outbox/relay.sql.hpp"
#include "postrider/outbox/state.sql.hpp"
#include "support/database.hpp"

namespace postrider::outbox {
namespace {

using testing::HasSubstr;
using testing::Not;

struct OutboxPlanTest : testing::Test {
  OutboxPlanTest() : relay(db.url()) {
    relay("set plan_cache_mode = force_generic_plan; set jit = off; set enable_seqscan = off");
  }

  std::string plan(pg::Statement statement, const std::string& arguments) {
    relay("prepare hot as " + std::string(statement.text));
    const std::string found = relay("explain (costs off) execute hot(" + arguments + ")");
    relay("deallocate hot");
    return found;
  }
  void expect(pg::Statement statement, const std::string& arguments, const std::string& index,
              const std::string& condition) {
    SCOPED_TRACE(statement.name);
    const std::string found = plan(statement, arguments);
    EXPECT_THAT(found, HasSubstr(index));
    EXPECT_THAT(found, HasSubstr(condition)) << "used, but not for what is looked for";
    EXPECT_THAT(found, Not(HasSubstr("Seq Scan")));
  }
  void expect_indexes(const std::string& state) {
    SCOPED_TRACE(state);
    expect(sql::fresh_rows::statement, "null, null, null, null, null, null", "outbox_fresh",
           "Index Cond: (ROW(xid, id) > ROW(");
    EXPECT_THAT(plan(sql::fresh_rows::statement, "null, null, null, null, null, null"),
                Not(HasSubstr("Sort Key: f.xid")))
        << "the first rows are read, not all";
    expect(sql::held_rows::statement, "null, null, null, null, null, null", "outbox_fresh",
           "Index Cond: (ROW(xid, id) >= ROW(");
    expect(sql::late_rows::statement, "null, null, null, null, null", "outbox_fresh",
           "Index Cond: (xid = ANY (");
    expect(sql::failed_rows::statement, "null, null, null, null", "outbox_failed",
           "Index Cond: (retry_at <= now())");
    expect(sql::listed_rows::statement, "null, null", "outbox_pkey", "Index Cond: (id = ANY (");
    for (const pg::Statement by_key : {sql::remove_rows::statement, sql::mark_processed::statement})
      expect(by_key, "null", "outbox_pkey", "Index Cond: (id = ANY ($1))");
    expect(sql::fail_rows::statement, "null, null, null, null, null", "outbox_pkey",
           "Index Cond: (id = ANY (");
    expect(sql::remove_processed::statement, "null, null", "outbox_processed", "Index Cond: (processed_at <");
  }

  void fill(int rows) {
    db.sql(
        "insert into outbox (xid, event_id, tenant_id, type, data) select (n / 3)::text::xid8, "
        "gen_random_uuid(), 'acme', 't', '{}' from generate_series(1, " +
        std::to_string(rows) + ") n");
  }

  support::Database db;
  support::SyncSql relay;
};

TEST_F(OutboxPlanTest, NeverAnalyzed) {
  expect_indexes("never analyzed");
}

TEST_F(OutboxPlanTest, DrainedAndVacuumed) {
  fill(20'000);
  db.sql("delete from outbox");
  db.sql("vacuum analyze outbox");
  expect_indexes("drained");
}

TEST_F(OutboxPlanTest, PinnedWithDeadRows) {
  fill(20'000);
  support::SyncSql pin(db.url());
  pin("begin isolation level repeatable read; select count(*) from outbox");
  db.sql("delete from outbox");
  db.sql("vacuum analyze outbox");
  expect_indexes("pinned");
}

TEST_F(OutboxPlanTest, ManyLiveRows) {
  fill(100'000);
  db.sql("vacuum analyze outbox");
  expect_indexes("100,000 live");
}

}  // namespace
}  // namespace postrider::outbox
