// A time range of webhook_deliveries reads the days that have deliveries of it, and no other.
#include "postrider/upkeep/upkeep.hpp"
#include "postrider/upkeep/upkeep_testing.hpp"

namespace postrider::upkeep {
namespace {

constexpr int kDays = 30;
constexpr int kPerDay = 2'000;

struct ViewDays : UpkeepTest {
  ViewDays() {
    db.sql("select create_partitions(" + std::to_string(kDays + 2) + ", 1)");
    // The tables of earlier days of which the query reads a row. For a bitmap scan the heap counts: the
    // summary of a day says that it has none.
    db.sql(R"(
      create function earlier_days_read(query text) returns text language plpgsql as $$
      declare
        plan jsonb;
      begin
        execute 'explain (analyze, buffers, timing off, format json) ' || query into plan;
        return (
          select coalesce(string_agg(distinct node ->> 'Relation Name', ','), 'none')
          from jsonb_path_query(plan, 'strict $.** ? (@."Relation Name" like_regex "^(attempt|event)_2")') as node
          where right(node ->> 'Relation Name', 8) < to_char((now() at time zone 'UTC') - interval '1 day', 'YYYYMMDD')
            and (node ->> 'Actual Loops')::numeric > 0
            and case node ->> 'Node Type'
                  when 'Bitmap Heap Scan'
                    then (node ->> 'Exact Heap Blocks')::bigint + (node ->> 'Lossy Heap Blocks')::bigint
                  else (node ->> 'Shared Hit Blocks')::bigint + (node ->> 'Shared Read Blocks')::bigint
                end > 0
        );
      end
      $$)");
    add("generate_series(" + std::to_string(kDays * kPerDay) + ", 1, -1)", "date_trunc('day', now(), 'UTC')");
    add_today();
  }

  void add_today() { add("generate_series(1, 1000)", "now()"); }
  // Delivered once, each that many parts of a day before `until`; with their events.
  void add(const std::string& numbers, const std::string& until) {
    db.sql(
        "with made as (select created_at, (left(replace(id_floor(created_at)::text, '-', ''), 12) || "
        "left(md5(random()::text), 20))::uuid as id from " +
        numbers + " as n cross join lateral (select " + until + " - n * interval '24 hours' / " +
        std::to_string(kPerDay) +
        " as created_at) as t), e as (insert into event (id, tenant_id, type, body, created_at) select id, "
        "'acme', 't', '{}', created_at from made) insert into attempt (delivery_id, attempt, bucket, "
        "endpoint_id, event_id, tenant_id, outcome, started_at, total_us, node_id, created_at) select id, 1, "
        "0, "
        "gen_random_uuid(), id, 'acme', 'delivered', created_at, 1, gen_random_uuid(), created_at from made");
  }
  void pass() {
    telemetry::Metrics metrics;
    Upkeep upkeep(loop, link, metrics,
                  {.retention = {.events = 24h * 60, .attempts = 24h * 60, .archive_dir = ""}});
    run(upkeep.run_once(base::BootClock::now()));
  }

  std::string earlier_days_read() { return db.sql("select earlier_days_read($q$" + per_hour + "$q$)"); }
  std::string counted() {
    return db.sql(
        "select sum(count) > 0, sum(count) - (select count(*) from attempt where created_at > now() - "
        "interval '24 hours') from (" +
        per_hour + ") as hours");
  }

  // As the documents have it.
  const std::string per_hour =
      "select date_trunc('hour', created_at) as hour, status, count(*), avg(attempts) from "
      "postrider.webhook_deliveries where created_at > now() - interval '24 hours' group by 1, 2";
};

TEST_F(ViewDays, OfARangeOnlyAreReadWhateverTheStateOfTheTables) {
  pass();
  EXPECT_EQ(earlier_days_read(), "none") << "after upkeep";
  EXPECT_EQ(counted(), "t|0");

  add_today();
  EXPECT_EQ(earlier_days_read(), "none") << "grown since it was analyzed";

  db.sql(
      "insert into queue (bucket, id, event_id, endpoint_id, tenant_id, due_at, created_at) select 1, "
      "new_id(), "
      "new_id(), new_id(), 'acme', now(), now() - interval '2 days' from generate_series(1, 20000)");
  EXPECT_EQ(earlier_days_read(), "none") << "with a queue that was never analyzed";
  db.sql("analyze queue");
  EXPECT_EQ(earlier_days_read(), "none") << "with a queue that was analyzed";
  db.sql("delete from queue where bucket >= 0");
  db.sql("vacuum analyze attempt, event, queue");
  EXPECT_EQ(earlier_days_read(), "none") << "analyzed all at once, and an empty queue";
  EXPECT_EQ(counted(), "t|0");
}

TEST_F(ViewDays, AScheduledReplayCountsAtItsTimeAlthoughItsIdIsOlder) {
  pass();
  db.sql(
      "update attempt set created_at = now() - interval '1 hour', replay_id = new_id() where delivery_id = "
      "(select "
      "delivery_id from attempt where created_at < now() - interval '20 days' order by delivery_id desc "
      "limit 1)");
  EXPECT_EQ(counted(), "t|0");
  EXPECT_THAT(earlier_days_read(), testing::MatchesRegex("attempt_[0-9]+")) << "its own day, and no other";
}

}  // namespace
}  // namespace postrider::upkeep
