// The hot statements use their index whatever state the tables were in when the plan was made. A plan made on
// an empty queue that meets a backlog takes seconds instead of milliseconds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "postrider/cluster/publish_log.sql.hpp"
#include "postrider/delivery/lanes/fetch.sql.hpp"
#include "postrider/delivery/settle/dead_letter.sql.hpp"
#include "postrider/delivery/settle/settle.sql.hpp"
#include "postrider/delivery/settle/sweep.sql.hpp"
#include "support/database.hpp"

namespace postrider::delivery {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

struct PlanTest : testing::Test {
  PlanTest() : engine(db.url()) {
    engine("set plan_cache_mode = force_generic_plan; set jit = off; set enable_seqscan = off");
  }

  // The generic plan. The parameters only have to be as many as the statement has.
  std::string plan(pg::Statement statement) {
    const std::string text = statement.text;
    int count = 0;
    while (text.find("$" + std::to_string(count + 1) + "::") != std::string::npos) ++count;
    std::string nulls;
    for (int i = 0; i < count; ++i) nulls += i == 0 ? "null" : ", null";
    return explain(text, nulls);
  }
  std::string explain(const std::string& text, const std::string& arguments) {
    engine("prepare hot as " + text);
    const std::string found = engine("explain (costs off) execute hot(" + arguments + ")");
    engine("deallocate hot");
    return found;
  }

  void expect_indexes(const std::string& state) {
    SCOPED_TRACE(state);
    const std::string by_key = "Index Cond: ((bucket = result.bucket) AND (id = result.id))";
    const std::string by_lane =
        "Index Cond: ((bucket = lane.bucket) AND (endpoint_id = lane.endpoint_id) AND (retry = lane.retry) "
        "AND "
        "(ROW(\"position\", due_at, id) >= ROW(";
    const std::string by_range = "Index Cond: ((bucket = part.bucket) AND (id >= part.first) AND (id <= $3))";
    expect(sql::delivered::statement, "queue_pkey", by_key);
    expect(sql::retrying::statement, "queue_pkey", by_key);
    expect(sql::dead_letter::statement, "queue_pkey", by_key);
    for (const pg::Statement settle :
         {sql::delivered::statement, sql::retrying::statement, sql::dead_letter::statement})
      expect_leases_of_the_batch(settle);
    expect(sql::rows_of_lanes::statement, "queue_lane", by_lane);
    expect(sql::rows_of_range::statement, "queue_pkey", by_range);
    expect(sql::lanes_of_bucket::statement, "queue_lane",
           "Index Cond: ((bucket = $1) AND (endpoint_id > lane_1.endpoint_id))");
    for (const pg::Statement sweep :
         {sql::sweep_disabled::statement, sql::sweep_canceled::statement, sql::sweep_older::statement}) {
      expect(sweep, "queue_lane", "Index Cond: ((bucket = $1) AND (endpoint_id = $2))");
      EXPECT_THAT(plan(sweep), Not(HasSubstr("Sort Key: queue")))
          << "a chunk must not read all rows of its lane";
    }
    expect(sql::end_clearing::statement, "queue_lane", "Index Cond: ((bucket = $3) AND (endpoint_id = $1))");
  }

  void expect(pg::Statement statement, const std::string& index, const std::string& condition) {
    SCOPED_TRACE(statement.name);
    const std::string found = plan(statement);
    EXPECT_THAT(found, HasSubstr(index));
    EXPECT_THAT(found, HasSubstr(condition)) << "used, but not for what is looked for";
    EXPECT_THAT(found, Not(HasSubstr("Seq Scan on queue")));
  }

  // However many buckets there are, a settle of one row reads one lease.
  void expect_leases_of_the_batch(pg::Statement settle) {
    SCOPED_TRACE(settle.name);
    const std::string found = plan(settle);
    EXPECT_THAT(found, ContainsRegex("Index Cond: \\(bucket = ANY \\(\\$[0-9]+\\)\\)"));
    EXPECT_THAT(found, HasSubstr("bucket_lease_pkey"));
    EXPECT_THAT(found, HasSubstr("hashed SubPlan")) << "a join would look up the lease of each row";
  }

  void fill(int rows) {
    db.sql(
        "insert into queue (bucket, id, event_id, endpoint_id, tenant_id, due_at, created_at) select n % 16, "
        "(lpad(to_hex(n), 12, '0') || repeat('0', 20))::uuid, gen_random_uuid(), md5((n % "
        "1000)::text)::uuid, "
        "'acme', now(), now() from generate_series(1, " +
        std::to_string(rows) + ") n");
  }
  void drain() { db.sql("delete from queue where bucket >= 0"); }

  support::Database db;
  support::SyncSql engine;
};

TEST_F(PlanTest, NeverAnalyzed) {
  support::SyncSql superuser(db.superuser_url());
  superuser("delete from pg_statistic where starelid = 'postrider.queue'::regclass");
  superuser(
      "update pg_class set reltuples = -1, relpages = 0, relallvisible = 0 where oid = "
      "'postrider.queue'::regclass");
  expect_indexes("never analyzed");
}

TEST_F(PlanTest, DrainedAndVacuumed) {
  fill(50'000);
  drain();
  db.sql("vacuum analyze queue");
  expect_indexes("drained");
}

TEST_F(PlanTest, PinnedWithDeadRows) {
  fill(50'000);
  db.sql("analyze queue");
  support::SyncSql pin(db.url());
  pin("begin isolation level repeatable read; select count(*) from queue");
  drain();
  db.sql("vacuum analyze queue");
  expect_indexes("pinned");
}

TEST_F(PlanTest, ManyLiveRows) {
  fill(200'000);
  db.sql("vacuum analyze queue");
  expect_indexes("200,000 live");
}

TEST_F(PlanTest, ABacklogOfOneLane) {
  db.sql(
      "insert into queue (bucket, id, event_id, endpoint_id, tenant_id, due_at, created_at) select 3, "
      "gen_random_uuid(), gen_random_uuid(), md5('one')::uuid, 'acme', now(), now() from generate_series(1, "
      "200000) n");
  db.sql("vacuum analyze queue");
  expect_indexes("one lane");
}

TEST_F(PlanTest, BodiesAreFoundByKeyInTheirPartitionOnly) {
  const std::string text = sql::bodies::statement.text;
  const std::string arguments =
      "1000, array[id_floor(now())], id_floor(now()), id_floor(now() + interval '1 second')";
  const auto expect_key = [&](const std::string& state) {
    SCOPED_TRACE(state);
    const std::string found = explain(text, arguments);
    EXPECT_THAT(found, HasSubstr("_pkey"));
    EXPECT_THAT(found, HasSubstr("(id = wanted.id)"));
    EXPECT_THAT(found, HasSubstr("Subplans Removed")) << "other days are not looked at";
  };
  const auto add = [this](int first, int last) {
    db.sql(
        "insert into event (id, tenant_id, type, body) select (left(replace(id_floor(now())::text, '-', ''), "
        "12) "
        "|| lpad(to_hex(n), 20, '0'))::uuid, 'acme', 't', '{}' from generate_series(" +
        std::to_string(first) + ", " + std::to_string(last) + ") n");
  };
  expect_key("never analyzed");
  add(1, 60);
  db.sql("analyze event");
  expect_key("analyzed when it had a few rows");
  add(100, 20'000);
  expect_key("grown since");
  db.sql("analyze event");
  expect_key("analyzed with rows");
}

TEST_F(PlanTest, TheLogIsReadFromItsCursorOn) {
  db.sql(
      "insert into publish_log (xid, node_id, first_id, last_id, buckets) select n::text::xid8, "
      "gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), '{1,2,3}' from generate_series(1, 50000) n");
  const auto expect_index = [&](const std::string& state) {
    SCOPED_TRACE(state);
    const std::string found = plan(cluster::sql::read_log::statement);
    EXPECT_THAT(found, HasSubstr("publish_log_by_xid"));
    EXPECT_THAT(found, Not(HasSubstr("Seq Scan on publish_log")));
  };
  expect_index("never analyzed");
  db.sql("vacuum analyze publish_log");
  expect_index("analyzed");
  db.sql("delete from publish_log");
  db.sql("vacuum analyze publish_log");
  expect_index("trimmed to nothing");
}

}  // namespace
}  // namespace postrider::delivery
