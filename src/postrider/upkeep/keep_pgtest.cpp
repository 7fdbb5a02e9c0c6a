// Days are dropped for all tenants; rows that are still needed outlive them.
#include "postrider/upkeep/keep.hpp"

#include <cstdlib>
#include <filesystem>

#include "postrider/upkeep/retention.hpp"
#include "postrider/upkeep/upkeep_testing.hpp"

namespace postrider::upkeep {
namespace {

constexpr auto kDay = std::chrono::hours(24);
constexpr int kDaysAgo = 12, kKept = 10;

class Keep : public UpkeepTest {
 protected:
  Keep() {
    db.sql("select create_partitions(25, 1)");
    endpoint = make_endpoint();
  }

  // A new event of that day; the id, quoted. It has the one delivery with the same id. Events of the same
  // millisecond differ in the bytes that all versions of an event share.
  std::string event_of(int days_ago, const std::string& tenant = "acme") {
    return db.sql("with made as (select (left(replace(id_floor(now() - interval '" +
                  std::to_string(days_ago) +
                  " days')::text, '-', ''), 12) || left(md5(random()::text), 20))::uuid as id), e as (insert "
                  "into event (id, tenant_id, type, body, created_at) select id, '" +
                  tenant + "', 't', '{\"a\":1}', id_time(id) from made) select '''' || id || '''' from made");
  }
  void queue(const std::string& id, const std::string& of = "") {
    db.sql(
        "insert into queue (bucket, id, event_id, endpoint_id, tenant_id, due_at, created_at) select "
        "bucket, " +
        id + ", " + id + ", id, tenant_id, now(), id_time(" + id +
        ") from endpoint where id = " + (of.empty() ? endpoint : of));
  }
  void attempt(const std::string& id, const std::string& outcome, const std::string& at = "now()") {
    db.sql(
        "insert into attempt (delivery_id, attempt, bucket, endpoint_id, event_id, tenant_id, outcome, "
        "started_at, total_us, node_id, created_at) select " +
        id + ", 1, bucket, id, " + id + ", tenant_id, '" + outcome + "', " + at +
        ", 1, gen_random_uuid(), now() from endpoint where id = " + endpoint);
  }
  void dead_letter(const std::string& id) {
    db.sql(
        "insert into dead_letter (delivery_id, bucket, endpoint_id, event_id, tenant_id, cause, attempts, "
        "created_at) select " +
        id + ", bucket, id, " + id +
        ", tenant_id, 'exhausted', 1, now() from "
        "endpoint where id = " +
        endpoint);
  }
  void range_replay(const std::string& scope, const std::string& after) {
    db.sql(
        "insert into replay (id, tenant_id, kind, status, reason, requested_by, scope, since, until, "
        "is_counted, after_id) values (new_id(), 'acme', 'range', 'running', 'x', 'y', '" +
        scope + "', now() - interval '14 days', now(), " +
        (after.empty() ? "false, null" : "true, " + after) + ")");
  }
  void end_deliveries() { db.sql("delete from queue where bucket >= 0"); }

  static RetentionOptions options(int events = kKept, int attempts = kKept) {
    return {.events = events * kDay,
            .attempts = attempts * kDay,
            .inbox = 30 * kDay,
            .audit = 30 * kDay,
            .rollups = 30 * kDay,
            .archive_dir = ""};
  }
  Retired pass(RetentionOptions wanted = options()) { return run(retire(link, std::move(wanted))); }
  runtime::Task<void> pass_into(Retired& retired) { retired = co_await retire(link, options()); }
  runtime::Task<void> until_waiting() {
    runtime::Wakeup turn(loop);
    while (db.sql("select count(*) from pg_locks where not granted") == "0") co_await turn.wait_for(1ms);
  }
  static runtime::Task<void> end_of(runtime::TaskGroup& group) { co_await group.join(); }
  // A pass that waits at the detach until `writer` commits.
  Retired pass_while(support::SyncSql& writer) {
    Retired retired;
    runtime::TaskGroup group;
    group.spawn(pass_into(retired));
    run(until_waiting());
    writer("commit");
    run(end_of(group));
    return retired;
  }

  std::string rows(const std::string& table, const std::string& id) {
    return db.sql("select count(*) from " + table + " where " + (table == "event" ? "id" : "delivery_id") +
                  " = " + id);
  }
  // The day's tables of events, attempts and dead letters.
  std::string tables(int days_ago = kDaysAgo) {
    return db.sql(
        "select count(*) from pg_class where relname ~ ('^(event|attempt|dead_letter)_' || to_char((now() - "
        "interval '" +
        std::to_string(days_ago) + " days') at time zone 'UTC', 'YYYYMMDD'))  and relkind = 'r'");
  }
  std::string replay_of(const std::string& id) {
    return db.sql("select outcome from create_replay('acme', " + id + ", 'x', 'y', now())");
  }
  std::string day_table(const std::string& parent) {
    return db.sql("select '" + parent + "_' || to_char((now() - interval '" + std::to_string(kDaysAgo) +
                  " days') at time zone 'UTC', 'YYYYMMDD')");
  }

  std::string endpoint;
};

TEST_F(Keep, APendingDeliveryKeepsItsEventAndHistoryAndTheRestOfTheDayGoes) {
  const auto waiting = event_of(kDaysAgo), done = event_of(kDaysAgo), others = event_of(kDaysAgo, "globex");
  queue(waiting);
  attempt(waiting, "retrying");
  attempt(done, "delivered");
  const Retired retired = pass();
  EXPECT_EQ(retired.held, 0);
  EXPECT_EQ(retired.kept, 2);
  EXPECT_EQ(tables(), "0");
  EXPECT_EQ(db.sql("select body from event where id = " + waiting), "{\"a\":1}");
  EXPECT_EQ(rows("attempt", waiting), "1");
  EXPECT_EQ(rows("event", done) + rows("event", others) + rows("attempt", done), "000");
  EXPECT_EQ(pass().kept, 0);
  EXPECT_EQ(rows("event", waiting), "1");
}

TEST_F(Keep, AllVersionsOfAKeptEventStay) {
  const auto main = event_of(kDaysAgo);
  db.sql("update event set main_id = id where id = " + main +
         "; insert into event (id, tenant_id, type, body, main_id) values ((left(replace(" + main +
         "::text, '-', ''), 20) || repeat('a', 12))::uuid, 'acme', 't', 'v2', " + main + ")");
  queue(main);
  pass();
  EXPECT_EQ(db.sql("select count(*) from event"), "2");
}

TEST_F(Keep, WhatIsKeptGoesWhenNothingNeedsItAnyMore) {
  const auto id = event_of(kDaysAgo), old = event_of(kDaysAgo);
  queue(id);
  queue(old);
  attempt(id, "retrying");
  attempt(old, "retrying", "now() - interval '11 days'");
  pass();
  EXPECT_EQ(db.sql("select count(*) from event_kept"), "2");
  end_deliveries();
  pass();
  EXPECT_EQ(db.sql("select count(*) from event"), "0");
  // The end of a delivery can be read for as long as attempts are kept.
  EXPECT_EQ(rows("attempt", id) + rows("attempt", old), "10");
}

TEST_F(Keep, AnUnresolvedDeadLetterIsKeptAndCanBeReplayed) {
  const auto id = event_of(kDaysAgo);
  dead_letter(id);
  attempt(id, "dead_letter");
  const auto counted = db.sql("select sum(unresolved) from dead_letter_delta");
  pass();
  EXPECT_EQ(tables(), "0");
  EXPECT_EQ(rows("event", id) + rows("attempt", id) + rows("dead_letter", id), "111");
  EXPECT_EQ(db.sql("select sum(unresolved) from dead_letter_delta"), counted);
  EXPECT_EQ(replay_of(id), "created");
  EXPECT_EQ(db.sql("select sum(unresolved) from dead_letter_delta"), "0");
  pass();
  EXPECT_EQ(rows("event", id), "1") << "the new delivery needs it";
  EXPECT_EQ(replay_of(id), "event_gone") << "nothing would keep it";
  end_deliveries();
  pass();
  EXPECT_EQ(rows("event", id), "0");
}

TEST_F(Keep, WhatIsPastItsTimeIsNotReplayedUnlessItIsAnUnresolvedDeadLetter) {
  const auto waiting = event_of(kDaysAgo), delivered = event_of(kKept + 1);
  queue(waiting);
  attempt(waiting, "retrying");
  attempt(delivered, "delivered");
  pass(options(kKept, 20));
  EXPECT_EQ(replay_of(waiting), "event_gone");
  EXPECT_EQ(replay_of(delivered), "event_gone");
}

TEST_F(Keep, APendingReplayAndAFanOutKeepTheirEvents) {
  const auto replayed = event_of(kDaysAgo), wide = event_of(kDaysAgo), letter = event_of(kDaysAgo);
  db.sql(
      "insert into queue (bucket, id, event_id, endpoint_id, tenant_id, due_at, created_at, replay_id) "
      "select "
      "bucket, new_id(), " +
      replayed +
      ", id, 'acme', now(), now(), new_id() from endpoint; insert into "
      "fanout_task (event_id, tenant_id, type, created_at) values (" +
      wide +
      ", 'acme', 't', now()); insert into "
      "dead_letter (delivery_id, bucket, endpoint_id, event_id, tenant_id, cause, attempts, created_at) "
      "select "
      "new_id(), bucket, id, " +
      letter + ", 'acme', 'exhausted', 1, now() from endpoint");
  pass();
  EXPECT_EQ(rows("event", replayed) + rows("event", wide) + rows("event", letter), "111");
}

TEST_F(Keep, AnUnfinishedReplayOfARangeKeepsWhatItHasYetToLookAt) {
  const auto seen = event_of(kDaysAgo + 1), next = event_of(kDaysAgo), others = event_of(kDaysAgo, "globex");
  attempt(next, "delivered");
  range_replay("missing", seen.substr(0, 20) + "ffff-ffffffffffff'");
  pass();
  EXPECT_EQ(rows("event", seen) + rows("event", next) + rows("event", others), "010");
  EXPECT_EQ(rows("attempt", next), "1")
      << "without it the event would look as if it had never been delivered";
  db.sql("update replay set status = 'completed', finished_at = now()");
  pass();
  EXPECT_EQ(rows("event", next), "0");
}

TEST_F(Keep, AnEventThatIsPublishedToTheDayWhileItIsDetachedIsKept) {
  support::SyncSql publisher(db.url());
  publisher(
      "begin; insert into event (id, tenant_id, type, body) values (id_floor(now() - interval '12 days'), "
      "'acme', 't', 'late'); insert into queue (bucket, id, event_id, endpoint_id, tenant_id, due_at, "
      "created_at) select 3, id, id, gen_random_uuid(), 'acme', now(), now() from event");
  EXPECT_EQ(pass_while(publisher).kept, 1);
  EXPECT_EQ(db.sql("select body from event"), "late");
  EXPECT_EQ(tables(), "0");
}

TEST_F(Keep, AReplayThatIsRequestedWhileTheDayIsDetachedHasItsEvent) {
  const auto id = event_of(kDaysAgo);
  attempt(id, "delivered");
  support::SyncSql person(db.url());
  person("begin; select create_replay('acme', " + id + ", 'x', 'y', now())");
  pass_while(person);
  EXPECT_EQ(db.sql("select count(*) from queue where bucket >= 0 and event_id = " + id), "1");
  EXPECT_EQ(rows("event", id), "1");
}

TEST_F(Keep, ADeadLetterThatIsWrittenWhileItsDayIsDetachedIsKept) {
  const auto id = event_of(kDaysAgo);
  queue(id);
  support::SyncSql settler(db.url());
  settler(
      "begin; insert into dead_letter (delivery_id, bucket, endpoint_id, event_id, tenant_id, cause, "
      "attempts, "
      "created_at) select id, bucket, endpoint_id, event_id, tenant_id, 'exhausted', 1, now() from queue "
      "where "
      "bucket >= 0; delete from queue where bucket >= 0");
  pass_while(settler);
  EXPECT_EQ(rows("event", id) + rows("dead_letter", id), "11");
  EXPECT_EQ(tables(), "0");
}

TEST_F(Keep, ADayThatWasDetachedByAPassThatDiedIsFinished) {
  const auto id = event_of(kDaysAgo), erased = event_of(kDaysAgo), done = event_of(kDaysAgo);
  queue(id);
  queue(erased);
  // It died behind the detach; one row had been copied already, and its payload was erased since.
  db.sql(
      "insert into event_kept select e.id, e.tenant_id, e.public_id, e.type, e.version, e.subject, "
      "e.traceparent, "
      "'', e.created_at, e.main_id, true, now() from event_day e where e.id = " +
      erased);
  db.sql("alter table event_day detach partition " + day_table("event"));
  pass();
  EXPECT_EQ(tables(), "0");
  EXPECT_EQ(db.sql("select body from event where id = " + id), "{\"a\":1}");
  EXPECT_EQ(db.sql("select body from event where id = " + erased), "");
  EXPECT_EQ(rows("event", done), "0");
}

TEST_F(Keep, ErasingEmptiesTheKeptCopy) {
  const auto id = event_of(kDaysAgo);
  queue(id);
  pass();
  EXPECT_EQ(db.sql("select erased, canceled from erase_payloads(array[" + id + "::uuid])"), "1|1");
  EXPECT_EQ(db.sql("select body from event_kept where id = " + id), "");
  EXPECT_EQ(db.sql("select outcome from attempt where delivery_id = " + id), "canceled");
  EXPECT_EQ(tables(), "0") << "its history needs no new day";
}

TEST_F(Keep, ErasingCancelsInTheBucketsOfTheTenantAndReadsNoOther) {
  const std::string deleted = make_endpoint(), id = event_of(1), other = event_of(1), stray = event_of(1);
  db.sql("update endpoint set bucket = 3, ordering = 'strict' where id = " + endpoint);
  db.sql("update endpoint set bucket = 7, status = 'deleted' where id = " + deleted);
  queue(id);
  queue(other, deleted);
  queue(stray);
  db.sql("update queue set bucket = 5 where id = " + stray);
  EXPECT_EQ(
      db.sql("select canceled from erase_payloads(array[" + id + ", " + other + ", " + stray + "]::uuid[])"),
      "2");
  EXPECT_EQ(db.sql("select bucket from queue where bucket >= 0"), "5")
      << "no endpoint of the tenant is there";
}

TEST_F(Keep, KeysAndNotesOfReplaysLiveAsLongAsTheirEvents) {
  const auto id = event_of(kDaysAgo), done = event_of(kDaysAgo);
  for (const auto& each : {id, done})
    db.sql("insert into event_key values ('acme', 'id', " + each + ", " + each +
           ", '', ''); insert into replayed values (" + each + ", " + endpoint +
           ", new_id(), null, new_id())");
  queue(id);
  pass();
  EXPECT_EQ(db.sql("select string_agg(event_id::text, ',') from event_key"), id.substr(1, 36));
  EXPECT_EQ(db.sql("select string_agg(event_id::text, ',') from replayed"), id.substr(1, 36));
  end_deliveries();
  pass();
  EXPECT_EQ(db.sql("select count(*) from event_key"), "0");
}

TEST_F(Keep, TheArchiveOfADayHasEveryRowOnce) {
  std::string directory = "/tmp/archive-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  const auto id = event_of(kDaysAgo), done = event_of(kDaysAgo);
  queue(id);
  RetentionOptions wanted = options(kKept, 20);
  wanted.archive_dir = directory;
  pass(wanted);
  const std::string file = directory + "/" + day_table("event") + ".ndjson.gz";
  for (const auto& each : {id, done})
    EXPECT_EQ(std::system(("test $(zcat " + file + " | grep -c " + each + ") = 1").c_str()), 0);
  EXPECT_NE(std::system(("zcat " + file + " | grep -q is_kept").c_str()), 0);
  EXPECT_EQ(std::filesystem::status(file).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  std::filesystem::remove_all(directory);
}

TEST_F(Keep, TheArchiveHasOnceWhatAPassThatDiedHadCopied) {
  std::string directory = "/tmp/archive-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  const auto id = event_of(kDaysAgo);
  queue(id);
  db.sql(
      "insert into event_kept select e.id, e.tenant_id, e.public_id, e.type, e.version, e.subject, "
      "e.traceparent, 'as it was kept', e.created_at, e.main_id, true, null from event_day e where e.id = " +
      id);
  db.sql("alter table event_day detach partition " + day_table("event"));
  RetentionOptions wanted = options();
  wanted.archive_dir = directory;
  pass(wanted);
  const std::string read = "zcat " + directory + "/" + day_table("event") + ".ndjson.gz | grep " + id;
  EXPECT_EQ(std::system(("test $(" + read + " | wc -l) = 1").c_str()), 0);
  EXPECT_EQ(std::system((read + " | grep -q 'as it was kept'").c_str()), 0);
  std::filesystem::remove_all(directory);
}

// The pass ends at the oldest day, whose rows were moved and whose table is still there.
TEST_F(Keep, AKeptRowIsNotTrimmedWhileItsDayHasYetToBeArchived) {
  const auto id = event_of(25);
  queue(id);
  RetentionOptions wanted = options();
  wanted.archive_dir = "/nowhere";
  EXPECT_THROW(pass(wanted), std::runtime_error);
  const std::string kept = "select count(*) from event_kept where id = " + id;
  ASSERT_EQ(db.sql(kept), "1");
  end_deliveries();
  run(trim_kept(link, {kKept * kDay, kKept * kDay}));
  EXPECT_EQ(db.sql(kept), "1");
  pass();
  EXPECT_EQ(db.sql(kept), "0");
}

TEST_F(Keep, OperatorsAreToldOnceBeforeWaitingDeliveriesAreCanceled) {
  const auto sending = make_endpoint();
  queue(event_of(16));
  queue(event_of(16), sending);
  db.sql("update endpoint set status = 'paused' where id = " + endpoint);
  EXPECT_EQ(pass().expiring, 1);
  pass();
  const std::string told =
      "select count(*) from event where tenant_id = 'postrider' and type = "
      "'endpoint.deliveries_expiring' and body like '%the endpoint is paused%'";
  EXPECT_EQ(db.sql(told), "1");
  EXPECT_EQ(db.sql("select count(*) from endpoint where cancel_before is not null"), "0");
  end_deliveries();
  pass();
  db.sql("select create_partitions(25, 1)");
  queue(event_of(16));
  pass();
  EXPECT_EQ(db.sql(told), "2") << "another time";
}

TEST_F(Keep, AfterTwiceTheTimeWhatWaitsIsMarkedForItsOwnerToCancel) {
  const auto held = make_endpoint(), sending = make_endpoint(), young = make_endpoint();
  queue(event_of(21));
  queue(event_of(21), held);
  queue(event_of(21), sending);
  queue(event_of(19), young);
  db.sql("update endpoint set status = 'paused' where id in (" + endpoint + ", " + young +
         "); update endpoint set held_reason = 'x' where id = " + held);
  pass();
  EXPECT_EQ(db.sql("select string_agg(cancel_reason, ';' order by id = " + held +
                   ") from endpoint where cancel_before <= now() - interval '20 days'"),
            "canceled by retention after twice retain_events: the endpoint is paused;"
            "canceled by retention after twice retain_events: the deliveries cannot be signed");
  EXPECT_EQ(db.sql("select count(*) from control_log where kind = 'endpoint'"), "2");
  db.sql("update brakes set is_paused = true");
  pass();
  EXPECT_EQ(db.sql("select cancel_reason from endpoint where id = " + sending),
            "canceled by retention after twice retain_events: all deliveries are paused");
}

}  // namespace
}  // namespace postrider::upkeep
