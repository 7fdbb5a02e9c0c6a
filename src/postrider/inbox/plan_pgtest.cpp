// Claims and acknowledgements read the rows they are about, whatever state the queue was in when their plans
// were made. The statements are inside functions that applications call on sessions of their own, so the test
// checks how many rows were read, with the server's own settings.
#include <gtest/gtest.h>

#include <string>

#include "postrider/inbox/forward.sql.hpp"
#include "support/database.hpp"

namespace postrider::inbox {
namespace {

struct InboxPlanTest : testing::Test {
  InboxPlanTest() : consumer(db.url()) {
    db.sql("insert into source (id, provider) values ('s', 'standard')");
    consumer("set plan_cache_mode = force_generic_plan");  // the worst: a plan is kept whatever comes
  }

  void fill(int rows, bool is_ordered = false) {
    db.sql(
        "with made as (select n, (left(replace(id_floor(now())::text, '-', ''), 12) || lpad(to_hex(n), 20, "
        "'0'))::uuid as id from generate_series(1, " +
        std::to_string(rows) +
        ") n), stored as (insert into inbox (id, source_id, bucket, headers, body) select id, 's', n % 16, "
        "'{}', 'x' "
        "from made) insert into inbox_queue (id, work, bucket, source_id, partition_key, is_ordered, due_at) "
        "select "
        "id, 'consume', n % 16, 's', n % 100, " +
        (is_ordered ? "true" : "false") + ", now() from made");
  }
  void drain() { db.sql("delete from inbox_queue where source_id = 's'; delete from inbox"); }

  // Claims ten and acknowledges them; how many rows of the queue that read.
  int rows_read() {
    consumer("begin");
    const std::string claimed =
        consumer("select string_agg(id, ',') from inbox_claim('w', 's', 10, interval '1 minute')");
    if (!claimed.empty()) consumer("select inbox_ack('w', string_to_array('" + claimed + "', ','))");
    const std::string read = consumer(
        "select seq_tup_read + coalesce(idx_tup_fetch, 0) from pg_stat_xact_user_tables where relid = "
        "'inbox_queue'::regclass");
    consumer("commit");
    return std::stoi(read);
  }

  support::Database db;
  support::SyncSql consumer;
};

// A handful of looks at each of ten rows; without an index it would be all of them.
constexpr int kAFewRows = 1'000;

TEST_F(InboxPlanTest, APlanOfADrainedQueueMeetsABacklog) {
  fill(20'000);
  drain();
  db.sql("vacuum analyze inbox_queue");
  EXPECT_LT(rows_read(), kAFewRows);
  fill(20'000);
  EXPECT_LT(rows_read(), kAFewRows);
}

TEST_F(InboxPlanTest, NeverAnalyzed) {
  support::SyncSql superuser(db.superuser_url());
  superuser("delete from pg_statistic where starelid = 'postrider.inbox_queue'::regclass");
  superuser("update pg_class set reltuples = -1, relpages = 0 where oid = 'postrider.inbox_queue'::regclass");
  EXPECT_LT(rows_read(), kAFewRows);
  fill(20'000);
  EXPECT_LT(rows_read(), kAFewRows);
}

TEST_F(InboxPlanTest, PinnedWithDeadRows) {
  fill(20'000);
  support::SyncSql pin(db.url());
  pin("begin isolation level repeatable read; select count(*) from inbox_queue");
  drain();
  db.sql("vacuum analyze inbox_queue");
  EXPECT_LT(rows_read(), kAFewRows);
  fill(20'000);
  EXPECT_LT(rows_read(), kAFewRows);
}

TEST_F(InboxPlanTest, ManyLiveRowsOfOrderedKeys) {
  fill(50'000, true);
  db.sql("vacuum analyze inbox_queue");
  EXPECT_LT(rows_read(), 10 * kAFewRows) << "the window of 500 and the heads of 100 keys";
}

TEST_F(InboxPlanTest, ForwardingLooksIntoTheDaysOfItsMessagesOnly) {
  fill(1'000);
  db.sql("update inbox_queue set work = 'forward' where source_id = 's'; analyze inbox");
  consumer("prepare take as " + std::string(sql::take_forwards::statement.text));
  consumer("begin");
  consumer("execute take('w', 's', 10, 60, 8000000)");
  const std::string looks = consumer(
      "select count(*) filter (where idx_tup_fetch >= 10), count(*) filter (where seq_scan + idx_scan > 0) "
      "from pg_stat_xact_user_tables where relid in (select inhrelid from pg_inherits where inhparent = "
      "'inbox'::regclass)");
  consumer("commit");
  EXPECT_EQ(looks, "1|1") << "days that were read, days that were looked into";
}

}  // namespace
}  // namespace postrider::inbox
