#include "postrider/pg/migrate.hpp"

#include <gmock/gmock.h>

#include <numeric>

#include "postrider/pg/pgtest_fixture.hpp"

namespace postrider::pg {
namespace {

using runtime::Task;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr Migration known[] = {
    {1, "first", "create table thing (bucket int default {{buckets}}); insert into thing default values;", 1},
    {2, "second",
     "alter table thing add extra text; create function two() returns int language sql as $$ select 2; $$",
     1},
};
// Binaries that know only the first migration do not run on the result of the third.
constexpr Migration breaking[] = {known[0], known[1], {3, "third", "alter table thing drop bucket", 2}};
constexpr Migration failing[] = {
    {1, "first", "create table thing (id int)", 1},
    {2, "second", "create table other (id int); select 1 / 0", 1},
};

Task<MigrateReport> migrate_all(runtime::Loop& loop, std::string url, std::span<const Migration> migrations,
                                MigrateOptions options = {}) {
  const std::unique_ptr<Connection> connection = co_await Connection::open(loop, migrating(url));
  options.migrations = migrations;
  options.postrider_version = "1.2'3";
  options.buckets = 48;
  const MigrateReport report = co_await migrate(*connection, options);
  co_return report;
}

struct MigrateTest : ConnectedTest {
  Task<MigrateReport> migrate_to(std::span<const Migration> migrations) {
    return migrate_all(loop, database.url(), migrations);
  }
};

TEST_F(MigrateTest, AppliesAllAndRecordsThem) {
  const MigrateReport report = run(migrate_to(known));
  EXPECT_EQ(report.version_before, 0);
  EXPECT_EQ(report.version, 2);
  EXPECT_THAT(report.applied, ElementsAre("first", "second"));
  EXPECT_EQ(database.sql("select bucket, extra from postrider.thing"), "48|");
  EXPECT_EQ(database.sql("select version, name, postrider_version from postrider.migration order by 1"),
            "1|first|1.2'3\n2|second|1.2'3");
}

TEST_F(MigrateTest, ASecondTimeChangesNothing) {
  run(migrate_to(known));
  const MigrateReport report = run(migrate_to(known));
  EXPECT_EQ(report.version_before, 2);
  EXPECT_EQ(report.version, 2);
  EXPECT_TRUE(report.applied.empty());
}

TEST_F(MigrateTest, GoesOnFromWhereTheDatabaseIs) {
  run(migrate_to(std::span(known).first(1)));
  const MigrateReport report = run(migrate_to(known));
  EXPECT_EQ(report.version_before, 1);
  EXPECT_THAT(report.applied, ElementsAre("second"));
}

Task<void> collect(Task<MigrateReport> task, std::vector<size_t>& applied) {
  const MigrateReport report = co_await task;
  applied.push_back(report.applied.size());
}

Task<void> all_at_once(MigrateTest& test, std::vector<size_t>& applied) {
  runtime::TaskGroup group;
  for (int i = 0; i < 4; ++i) group.spawn(collect(test.migrate_to(known), applied));
  co_await group.join();
}

TEST_F(MigrateTest, NodesThatStartTogetherMigrateOnce) {
  std::vector<size_t> applied;
  run(all_at_once(*this, applied));
  EXPECT_EQ(applied.size(), 4u);
  EXPECT_EQ(std::accumulate(applied.begin(), applied.end(), size_t{0}), 2u) << "each migration once";
}

TEST_F(MigrateTest, AnAdvisoryLockOfAnotherRoleDoesNotHoldItUp) {
  support::SyncSql other(database.url());
  other("select pg_advisory_lock(x'706f737472696465'::bigint)");
  const MigrateReport report = run(migrate_to(known));
  EXPECT_THAT(report.applied, ElementsAre("first", "second"));
}

TEST_F(MigrateTest, WaitsForAnOpenTransactionAndNamesIt) {
  run(migrate_to(std::span(known).first(1)));
  support::SyncSql other(database.url());
  other("begin; select from postrider.thing");
  const std::string pid = other("select pg_backend_pid()");
  MigrateOptions options;
  options.lock_timeout = Milliseconds(10);
  options.patience = Milliseconds(0);
  const Error error = error_of(migrate_all(loop, database.url(), known, options));
  EXPECT_THAT(error.what(), HasSubstr("pid " + pid + " (role"));
  other("commit");
  EXPECT_THAT(run(migrate_to(known)).applied, ElementsAre("second"));
}

TEST_F(MigrateTest, AnOlderBinaryRunsOnANewerSchemaThatAllowsIt) {
  run(migrate_to(breaking));
  const MigrateReport report = run(migrate_to(known));
  EXPECT_EQ(report.version, 3);
  EXPECT_TRUE(report.applied.empty());
}

TEST_F(MigrateTest, AnOlderBinaryIsRejectedByASchemaThatNeedsANewerOne) {
  run(migrate_to(breaking));
  const Error error = error_of(migrate_to(std::span(known).first(1)));
  EXPECT_THAT(error.what(),
              HasSubstr("migrated by a newer postrider (schema version 3, which needs a postrider "
                        "that knows version 2; this one knows up to 1)"));
}

TEST_F(MigrateTest, AFailingMigrationIsRolledBackAndTheEarlierOnesStay) {
  const Error error = error_of(migrate_to(failing));
  EXPECT_THAT(error.what(), HasSubstr("migration 2 (second)"));
  EXPECT_EQ(database.sql("select max(version) from postrider.migration"), "1");
  EXPECT_EQ(database.sql("select to_regclass('postrider.other') is null"), "t");
}

}  // namespace
}  // namespace postrider::pg
