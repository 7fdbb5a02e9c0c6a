// Days are created and dropped next to open queries, and no other statement has to wait for it.
#include "postrider/upkeep/upkeep.hpp"
#include "postrider/upkeep/upkeep_testing.hpp"

namespace postrider::upkeep {
namespace {

struct Partitions : UpkeepTest {
  std::string days(const std::string& parent) {
    return db.sql(
        "select min(day) - today, max(day) - today, count(*) from (select to_date(right(c.relname, 8), "
        "'YYYYMMDD') as day, (now() at time zone 'UTC')::date as today from pg_inherits i join pg_class c on "
        "c.oid = i.inhrelid where i.inhparent = '" +
        (parent == "inbox" ? parent : parent + "_day") + "'::regclass) d group by today");
  }
  runtime::Task<void> retire_all(Retired& retired) {
    const RetentionOptions kept{.events = 24h * 10, .attempts = 24h * 10, .archive_dir = ""};
    retired = co_await retire(link, kept);
  }
  runtime::Task<void> make_missing(int& made, std::string& error) {
    try {
      made = co_await create_partitions(link);
    } catch (const pg::Error& thrown) {
      error = thrown.what();
    }
  }
  static runtime::Task<void> end_of(runtime::TaskGroup& group) { co_await group.join(); }
  runtime::Task<void> until(std::string sql, std::string wanted) {
    runtime::Wakeup turn(loop);
    while (db.sql(sql) != wanted) co_await turn.wait_for(1ms);
  }
};

constexpr const char* kParents[] = {"event", "attempt", "dead_letter", "inbox"};

TEST_F(Partitions, AreThereAWeekBackAndTwoAhead) {
  for (const std::string parent : kParents) {
    db.sql("drop table " + parent + "_" + db.sql("select to_char(now() at time zone 'UTC', 'YYYYMMDD')"));
    db.sql("drop table " + parent + "_" +
           db.sql("select to_char(now() at time zone 'UTC' + interval '14 days', 'YYYYMMDD')"));
  }
  EXPECT_EQ(run(create_partitions(link)), 8);
  for (const std::string parent : kParents) EXPECT_EQ(days(parent), "-7|14|22") << parent;
  EXPECT_EQ(db.sql("select count(*) from pg_partitioned_table where partdefid <> 0"), "0")
      << "with a default partition none can be detached beside others' work";
}

TEST_F(Partitions, TwoNodesMakeTheSameDayAtOnce) {
  const std::string day = "(now() at time zone 'UTC')::date + ";
  for (const std::string ahead : {"13", "14"})
    db.sql("drop table event_" + db.sql("select to_char(" + day + ahead + ", 'YYYYMMDD')"));
  support::SyncSql other(db.url());
  other("begin; select create_partition('event', " + day + "13)");
  int made = -1;
  std::string error;
  runtime::TaskGroup group;
  group.spawn(make_missing(made, error));
  run(until("select count(*) from pg_locks where not granted", "1"));
  other("commit");
  run(end_of(group));
  EXPECT_EQ(error, "");
  EXPECT_EQ(made, 1) << "the one behind it";
  EXPECT_EQ(days("event"), "-7|14|22");
}

TEST_F(Partitions, ADayIsMadeBesideAnOpenQuery) {
  support::SyncSql support(db.url());
  support(
      "begin; select count(*) from event; select count(*) from attempt; select count(*) from dead_letter; "
      "select "
      "count(*) from inbox");
  for (const std::string parent : kParents)
    EXPECT_EQ(db.sql("set lock_timeout = '1s'; select create_partition('" + parent +
                     "', (now() at time zone 'UTC')::date + 30)"),
              "t");
}

TEST_F(Partitions, NobodyWaitsBehindADayThatIsTakenAway) {
  db.sql("select create_partition('event', (now() at time zone 'UTC')::date - 12)");
  support::SyncSql support(db.url());
  support("begin; select count(*) from event");
  Retired retired;
  runtime::TaskGroup group;
  group.spawn(retire_all(retired));
  run(until("select count(*) > 0 from pg_locks where not granted", "t"));
  EXPECT_NO_THROW(
      db.sql("set lock_timeout = '200ms'; insert into event (id, tenant_id, type, body) values "
             "(id_floor(now()), 'acme', 't', '{}')"));
  run(end_of(group));
  EXPECT_EQ(retired.held, 1) << "it does not wait forever either";
  support("commit");
  run(retire_all(retired));
  EXPECT_EQ(retired.dropped, 1);
  EXPECT_EQ(
      db.sql("select count(*) from pg_class where relname = 'event_' || to_char(now() at time zone 'UTC' - "
             "interval '12 days', 'YYYYMMDD')"),
      "0");
}

TEST_F(Partitions, ParentsAreAnalyzedOnceADay) {
  telemetry::Metrics metrics;
  Upkeep upkeep(loop, link, metrics,
                {.retention = {.events = 24h * 30, .attempts = 24h * 30, .archive_dir = ""}});
  run(upkeep.run_once(base::BootClock::now()));
  const std::string analyzed =
      "select string_agg(relname, ',' order by relname) from pg_stat_user_tables where last_analyze > now() "
      "- interval "
      "'1 minute' and relname in ('event', 'attempt', 'dead_letter', 'inbox')";
  db.wait_for(analyzed, "attempt,dead_letter,event,inbox");
  const std::string counts =
      "select sum(analyze_count) from pg_stat_user_tables where relname in ('event', 'attempt')";
  const std::string before = db.sql(counts);
  run(upkeep.run_once(base::BootClock::now() + 2h));
  EXPECT_EQ(db.sql(counts), before);
}

}  // namespace
}  // namespace postrider::upkeep
