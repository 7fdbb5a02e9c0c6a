#include "postrider/upkeep/retention.hpp"

#include <cstdlib>
#include <filesystem>

#include "postrider/telemetry/metrics.hpp"
#include "postrider/upkeep/upkeep.hpp"
#include "postrider/upkeep/upkeep_testing.hpp"

namespace postrider::upkeep {
namespace {

using testing::HasSubstr;

constexpr auto kDay = std::chrono::hours(24);

class Retention : public UpkeepTest {
 protected:
  Retention() { db.sql("select create_partitions(20, 1)"); }

  // Creates rows of this number of days ago; returns the ID, quoted.
  std::string event_of(int days_ago) {
    return db.sql("with made as (select (left(replace(id_floor(now() - interval '" +
                  std::to_string(days_ago) +
                  " days')::text, '-', ''), 20) || left(md5(random()::text), 12))::uuid as id), e as (insert "
                  "into event "
                  "(id, tenant_id, type, body) select id, 'acme', 't', '{\"a\":1}' from made) select '''' || "
                  "id || '''' "
                  "from made");
  }
  void dead_letter_of(const std::string& id) {
    db.sql(
        "insert into dead_letter (delivery_id, bucket, endpoint_id, event_id, tenant_id, cause, attempts, "
        "created_at) "
        "values (" +
        id + ", 1, gen_random_uuid(), " + id + ", 'acme', 'exhausted', 1, now())");
  }
  runtime::Task<void> until_there(std::string file) {
    runtime::Wakeup turn(loop);
    while (!std::filesystem::exists(file)) co_await turn.wait_for(1ms);
  }
  Retired pass(RetentionOptions options) { return run(retire(link, std::move(options))); }
  static RetentionOptions kept(int events, int attempts) {
    return {.events = events * kDay,
            .attempts = attempts * kDay,
            .inbox = 30 * kDay,
            .audit = 30 * kDay,
            .rollups = 30 * kDay,
            .archive_dir = ""};
  }
  static RetentionOptions inbox_kept(int inbox) {
    RetentionOptions options = kept(30, 30);
    options.inbox = inbox * kDay;
    return options;
  }
  // Creates a message that was processed this number of days ago, with its key; returns the ID, quoted.
  std::string message_of(int days_ago, const std::string& source = "stripe") {
    return db.sql(
        "with made as (select (left(replace(id_floor(now() - interval '" + std::to_string(days_ago) +
        " days')::text, '-', ''), 20) || left(md5(random()::text), 12))::uuid as id), m as (insert "
        "into inbox (id, source_id, bucket, headers, body, status, done_at) select id, '" +
        source +
        "', 1, '{}', '{\"a\":1}', 'done', now() from made), k as (insert into inbox_key (source_id, "
        "key, id) select '" +
        source +
        "', id::text, id from made), c as (insert into inbox_content (source_id, digest, topics, ids, id) "
        "select '" +
        source +
        "', sha256(id::text::bytea), '{\"\"}', array[id], id from made) select '''' || id || '''' from made");
  }
  void make_source(const std::string& id) {
    db.sql("insert into source (id, provider) values ('" + id + "', 'stripe')");
  }
  void queue_message(const std::string& id) {
    db.sql(
        "insert into inbox_queue (id, work, bucket, source_id, is_ordered, due_at) select id, 'consume', "
        "bucket, "
        "source_id, false, now() from inbox where id = " +
        id + "; update inbox set status = 'pending', done_at = null where id = " + id);
  }
  std::string rows_of(const std::string& id) {  // messages and keys
    const std::string keys = db.sql("select count(*) from inbox_key where id = " + id);
    EXPECT_EQ(db.sql("select count(*) from inbox_content where id = " + id), keys) << "contents go with keys";
    return db.sql("select count(*) from inbox where id = " + id) + " " + keys;
  }
  // Up to today; those of the days to come are there, too.
  std::string days(const std::string& parent) {
    const std::string days_of = parent == "inbox" ? parent : parent + "_day";
    return db.sql("select count(*) from pg_inherits where inhparent = '" + days_of +
                  "'::regclass and right(inhrelid::regclass::text, 8) <= to_char(now() at time zone 'UTC', "
                  "'YYYYMMDD')");
  }
};

TEST_F(Retention, DaysPastTheirTimeAreDroppedEachKindByItsOwn) {
  const auto old = event_of(12), young = event_of(3);
  const Retired retired = pass(kept(10, 15));
  EXPECT_EQ(db.sql("select count(*) from event where id = " + old), "0");
  EXPECT_EQ(db.sql("select count(*) from event where id = " + young), "1");
  EXPECT_EQ(days("event"), "11");  // 10 days and today
  EXPECT_EQ(days("dead_letter"), "11");
  EXPECT_EQ(days("attempt"), "16");
  EXPECT_EQ(retired.dropped, 10 + 10 + 5);
  EXPECT_EQ(pass(kept(10, 15)).dropped, 0);
}

TEST_F(Retention, UnresolvedDeadLettersAreGivenUpAfterTwiceTheTime) {
  const auto young = event_of(12), old = event_of(20);
  dead_letter_of(young);
  dead_letter_of(old);
  pass(kept(8, 8));
  EXPECT_EQ(
      db.sql("select count(*) from dead_letter where delivery_id = " + young + " and resolved_at is null"),
      "1");
  EXPECT_EQ(db.sql("select count(*) from event where id = " + young), "1");
  EXPECT_EQ(db.sql("select count(*) from dead_letter where delivery_id = " + old), "0");
  EXPECT_EQ(db.sql("select count(*) from event where id = " + old), "0");
}

TEST_F(Retention, NoAdvisoryLockOfAnotherSessionHoldsItUp) {
  event_of(12);
  support::SyncSql hostile(db.url());
  hostile("select pg_advisory_lock(hashtextextended('postrider.retention', 0))");
  EXPECT_GT(pass(kept(10, 30)).dropped, 0);
}

TEST_F(Retention, OneSessionAtATime) {
  event_of(12);
  support::SyncSql other(db.url());
  other(
      "update session_lease set backend_pid = pg_backend_pid(), backend_start ="
      " (select backend_start from pg_stat_activity where pid = pg_backend_pid()) where name = 'retention'");
  EXPECT_EQ(pass(kept(10, 30)).dropped, 0);
  other("update session_lease set backend_pid = null where name = 'retention'");
  EXPECT_GT(pass(kept(10, 30)).dropped, 0);
}

TEST_F(Retention, KeysGoWithTheirEvents) {
  db.sql(
      "insert into event_key select 'acme', 'id', 'k' || d, (left(replace(id_floor(now() - d * interval '1 "
      "day')::text, '-', ''), 20) || 'abcdefabcdef')::uuid, '', '' from generate_series(1, 20) d");
  pass(kept(10, 10));
  EXPECT_EQ(db.sql("select count(*) from event_key"), "10");
}

TEST_F(Retention, ATableThatIsLockedHoldsUpNoOtherAndIsFinishedLater) {
  event_of(12);
  const std::string name =
      db.sql("select 'event_' || to_char((now() - interval '12 days') at time zone 'UTC', 'YYYYMMDD')");
  {
    // A reader of the parent keeps the detach from ending within its lock_timeout.
    support::SyncSql reader(db.url());
    reader("begin; select count(*) from event");
    const Retired retired = pass(kept(10, 30));
    EXPECT_EQ(retired.held, 10) << "events";
    EXPECT_EQ(retired.dropped, 10) << "dead letters";
    reader("commit");
  }
  EXPECT_EQ(pass(kept(10, 30)).held, 0);
  EXPECT_EQ(db.sql("select to_regclass('postrider." + name + "') is null"), "t");
  EXPECT_EQ(days("event"), "11");
}

TEST_F(Retention, ADayGoesToTheArchiveFirst) {
  std::string directory = "/tmp/archive-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  const auto id = event_of(12);
  for (int i = 0; i < 5'000; ++i)
    if (i % 1'000 == 0)
      db.sql("insert into event (id, tenant_id, type, body) select (left(" + id +
             ", 18) || '-8000-' || "
             "lpad(to_hex(n), 12, '0'))::uuid, 'acme', 't', '{}' from generate_series(" +
             std::to_string(i) + ", " + std::to_string(i + 999) + ") n");
  RetentionOptions options = kept(10, 30);
  options.archive_dir = directory;
  pass(options);
  const std::string file =
      directory + "/event_" +
      db.sql("select to_char((now() - interval '12 days') at time zone 'UTC', 'YYYYMMDD')") + ".ndjson.gz";
  EXPECT_EQ(std::system(("test $(zcat " + file + " | wc -l) = 5001").c_str()), 0);
  EXPECT_EQ(std::system(("zcat " + file + " | grep -q '\"tenant_id\":\"acme\"'").c_str()), 0);
  std::filesystem::remove_all(directory);

  options.archive_dir = "/nowhere";
  db.sql("select create_partitions(20, 1)");
  event_of(16);
  EXPECT_THROW(pass(options), std::runtime_error);
  EXPECT_EQ(db.sql("select count(*) > 0 from pg_class where relname = 'event_' || to_char((now() - interval "
                   "'16 days') at "
                   "time zone 'UTC', 'YYYYMMDD')"),
            "t");
}

TEST_F(Retention, AStopCutsOffTheArchiveWhichTheNextPassMakes) {
  std::string directory = "/tmp/archive-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  const auto id = event_of(12);
  db.sql("insert into event (id, tenant_id, type, body) select (left(" + id +
         ", 18) || '-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'acme', 't', '{}' from "
         "generate_series(1, 100000) n");
  RetentionOptions options = kept(10, 30);
  options.archive_dir = directory;
  telemetry::Metrics metrics;
  Upkeep upkeep(loop, link, metrics, {.retention = options});
  upkeep.start();
  const std::string file =
      directory + "/event_" +
      db.sql("select to_char((now() - interval '12 days') at time zone 'UTC', 'YYYYMMDD')") + ".ndjson.gz";
  run(until_there(file + ".part"));
  run(upkeep.stop());
  EXPECT_FALSE(std::filesystem::exists(file)) << "it waited for the end of the archive";
  EXPECT_FALSE(std::filesystem::exists(file + ".part"));

  db.wait_for("select count(*) from pg_stat_activity where datname = current_database()", "1");
  pg::Link next(loop, link_options());
  next.start();
  run(next.wait_up(base::BootClock::now() + 30s));
  run(retire(next, options));
  run(next.stop());
  EXPECT_EQ(std::system(("test $(zcat " + file + " | wc -l) = 100001").c_str()), 0);
  std::filesystem::remove_all(directory);
}

TEST_F(Retention, MessagesGoByTheirOwnTimeAndTheirKeysWithThem) {
  make_source("stripe");
  const auto old = message_of(12), young = message_of(3);
  const Retired retired = pass(inbox_kept(10));
  EXPECT_EQ(rows_of(old), "0 0");
  EXPECT_EQ(rows_of(young), "1 1");
  EXPECT_EQ(days("inbox"), "11");
  EXPECT_EQ(days("event"), "21");
  EXPECT_EQ(retired.dropped, 10);
  EXPECT_EQ(retired.rows_deleted, 2) << "its key and its content";
}

TEST_F(Retention, ADayWithAMessageThatIsNotDoneStaysWithItsKeys) {
  make_source("stripe");
  const auto waiting = message_of(20), beside = message_of(20), later = message_of(15);
  queue_message(waiting);
  EXPECT_EQ(pass(inbox_kept(3)).held, 1);
  EXPECT_EQ(rows_of(waiting), "1 1");
  EXPECT_EQ(rows_of(beside), "1 1");  // sent again, it is still a duplicate
  EXPECT_EQ(rows_of(later), "0 0");
  db.sql("delete from inbox_queue where bucket >= 0");
  EXPECT_EQ(pass(inbox_kept(3)).dropped, 1);
  EXPECT_EQ(rows_of(waiting) + " " + rows_of(beside), "0 0 0 0");
}

TEST_F(Retention, ADeadMessageHoldsItsDayUntilSomebodyDecides) {
  make_source("stripe");
  const auto dead = message_of(20);
  db.sql("update inbox set status = 'dead', dead_at = now(), dead_work = '{consume}', done_at = null");
  EXPECT_EQ(pass(inbox_kept(1)).held, 1);
  EXPECT_EQ(rows_of(dead), "1 1");
  db.sql("update inbox set status = 'discarded', dead_at = null, dead_work = null");
  EXPECT_EQ(pass(inbox_kept(1)).dropped, 1);
  EXPECT_EQ(rows_of(dead), "0 0");
}

TEST_F(Retention, NobodyDecidesAboutMessagesOfADeletedSource) {
  const auto waiting = message_of(12, "gone"), dead = message_of(12, "gone"), young = message_of(3, "gone");
  queue_message(waiting);
  queue_message(young);
  db.sql("update inbox set status = 'dead', dead_at = now() where id = " + dead);
  EXPECT_EQ(pass(inbox_kept(10)).held, 0);
  EXPECT_EQ(rows_of(waiting) + " " + rows_of(dead), "0 0 0 0");
  EXPECT_EQ(
      db.sql("select count(*) filter (where bucket >= 0) || ' ' || count(*) filter (where bucket < 0) from "
             "inbox_queue"),
      "1 5000");
}

TEST_F(Retention, WorkThatAConsumerHasLockedIsNotWaitedFor) {
  const auto held = message_of(12, "gone"), free = message_of(12, "gone");
  queue_message(held);
  queue_message(free);
  const std::string left = "select count(*) from inbox_queue where bucket >= 0 and id = ";
  support::SyncSql consumer(db.url());
  consumer("begin; update inbox_queue set due_at = now() + interval '1 minute' where id = " + held);
  pass(inbox_kept(10));
  EXPECT_EQ(db.sql(left + held) + db.sql(left + free), "10");
  consumer("commit");
  pass(inbox_kept(10));
  EXPECT_EQ(db.sql(left + held), "0");
}

TEST_F(Retention, ASentinelOfTheQueueHoldsNoDay) {
  const auto id = message_of(12);
  db.sql("update inbox_queue set id = " + id + " where id = (select id from inbox_queue limit 1)");
  EXPECT_EQ(pass(inbox_kept(10)).held, 0);
}

TEST_F(Retention, InboundMessagesGoToTheArchive) {
  std::string directory = "/tmp/archive-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  message_of(12);
  RetentionOptions options = inbox_kept(10);
  options.archive_dir = directory;
  pass(options);
  const std::string file =
      directory + "/inbox_" +
      db.sql("select to_char((now() - interval '12 days') at time zone 'UTC', 'YYYYMMDD')") + ".ndjson.gz";
  EXPECT_EQ(std::system(("zcat " + file + " | grep -q '\"source_id\":\"stripe\"'").c_str()), 0);
  std::filesystem::remove_all(directory);
}

TEST_F(Retention, UrlsThatEndpointsHadAreKeptAsLongAsAttempts) {
  const std::string endpoint = make_endpoint();
  for (const char* url : {"http://127.0.0.1/2", "http://127.0.0.1/3"})
    db.sql("update endpoint set url = '" + std::string(url) + "'");
  db.sql("update former_url set until = now() - interval '32 days' where version = 1");
  EXPECT_EQ(pass(kept(30, 30)).rows_deleted, 1);
  EXPECT_EQ(db.sql("select version, url from former_url"), "2|http://127.0.0.1/2");
  EXPECT_EQ(db.sql("select url_version from endpoint"), "3");
}

TEST_F(Retention, TheAuditLogAndRollupsGoEachByTheirOwnTime) {
  db.sql(
      "delete from audit; insert into audit (at, actor_kind, actor, action, object) select now() - d * "
      "interval "
      "'1 day', 'system', 'system', 'x.y', 'z' from generate_series(1, 20) d, generate_series(1, 300);"
      "insert into rollup (hour, tenant_id, endpoint_id, event_type, node_id) select date_trunc('hour', "
      "now()) - "
      "d * interval '1 day', 'acme', gen_random_uuid(), 't', gen_random_uuid() from generate_series(1, 20) d;"
      "insert into rollup_closed select hour from rollup");
  RetentionOptions options = kept(30, 30);
  options.audit = 12 * kDay + std::chrono::hours(12);
  options.rollups = 5 * kDay + std::chrono::hours(12);
  EXPECT_EQ(pass(options).rows_deleted, 8 * 300 + 15 + 15);
  EXPECT_EQ(db.sql("select count(*), min(at) > now() - interval '12 days 12 hours' from audit"), "3600|t");
  EXPECT_EQ(db.sql("select count(*) from rollup"), "5");
  EXPECT_EQ(db.sql("select count(*) from rollup_closed"), "5");
}

}  // namespace
}  // namespace postrider::upkeep
