// Settling: guarded by attempt number, owner and epoch; a bad item harms only itself.
#include "postrider/delivery/settle/settle.hpp"

#include "postrider/delivery/delivery_testing.hpp"
#include "postrider/delivery/settle/settle.sql.hpp"

namespace postrider::delivery {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

struct SettleTest : DeliveryTest {
  SettleTest() : link(loop, {.connect = pg::ConnectOptions::engine(db.url())}) {
    make_tenant("acme");
    endpoint = make_endpoint("acme", receiver.url("/in"));
    lane = make_lane(endpoint, 1);
    db.sql("update bucket_lease set epoch = 1, owner = " + quoted(node.uuid));
    link.start();
    run(link.wait_up(base::BootClock::now() + 30s));
    settler = std::make_unique<Settler>(loop, link, metrics, SettlerOptions{.node_id = node});
  }
  ~SettleTest() override {
    settler->abandon();
    run(link.stop());
    run(settler->stop());
    run(end_of(attempts));
  }

  std::shared_ptr<Lane> make_lane(const TestEndpoint& of, int64_t epoch) {
    auto made = std::make_shared<Lane>(of.id, Lane::Home{of.bucket, epoch}, totals);
    registry::LoadedEndpoint config;
    config.id = of.id;
    config.tenant_id = of.tenant;
    config.url = receiver.url("/in");
    if (of.is_strict) config.ordering = model::Ordering::strict;
    made->configure(make_lane_config(std::move(config)), {base::BootClock::now(), ids.now()});
    return made;
  }

  Settlement settlement(const model::CommittedDelivery& delivery, Verdict::Kind kind) {
    Settlement made;
    made.lane = lane;
    made.row.key = {delivery.position, delivery.due_at, delivery.id};
    made.row.event_id = delivery.event->id;
    made.row.created_at = delivery.created_at;
    made.verdict.kind = kind;
    made.verdict.cause = Cause::exhausted;
    made.verdict.retry_at = base::Timestamp(std::chrono::seconds(2'000'000'000));
    made.facts.started_at = ids.now();
    made.facts.status_code = kind == Verdict::Kind::delivered ? 204 : 503;
    if (kind != Verdict::Kind::delivered) {
      made.facts.error = "http_503";
      made.facts.error_detail = "the endpoint responded with 503";
    }
    made.facts.total_us = 1234;
    made.facts.preview = "noted";
    made.facts.address = "127.0.0.1";
    return made;
  }

  // As an attempt does it.
  runtime::Task<void> settle_one(Settlement settlement) {
    const Written how = co_await settler->settle(settlement);
    told.push_back(how);
    reported_as[settlement.row.id()] = how;
    wakeup.notify();
  }
  runtime::Task<void> settle_all(std::vector<Settlement> settlements) {
    const size_t wanted = told.size() + settlements.size();
    for (Settlement& each : settlements) attempts.spawn(settle_one(std::move(each)));
    while (told.size() < wanted) co_await wakeup.wait_for(1s);
  }
  void settle(std::vector<Settlement> settlements) { run(settle_all(std::move(settlements))); }
  void settle(Settlement one) {
    std::vector<Settlement> settlements;
    settlements.push_back(std::move(one));
    settle(std::move(settlements));
  }

  static runtime::Task<void> end_of(runtime::TaskGroup& group) { co_await group.join(); }
  runtime::Task<void> until_a_settlement_waits() {
    runtime::Wakeup turn(loop);
    while (db.sql("select count(*) > 0 from pg_locks where not granted") != "t") co_await turn.wait_for(1ms);
  }

  runtime::Task<void> until_down() {
    runtime::Wakeup turn(loop);
    while (link.is_up() && link.connection_number() == 1) co_await turn.wait_for(1ms);
  }

  runtime::Task<void> until_rejected_or_reported(int rejections) {
    runtime::Wakeup turn(loop);
    const std::string are_enough = "select last_value >= " + std::to_string(rejections) + " from refusals";
    while (told.empty() && db.sql(are_enough) != "t") co_await turn.wait_for(1ms);
  }

  // The database has nothing of it; it is reported as late and counted.
  void expect_late(Settlement one) {
    const std::string before = db.sql("select * from queue where bucket >= 0");
    const double late = metrics.late_settles_dropped.value();
    settle(std::move(one));
    EXPECT_EQ(told.back(), Written::late);
    EXPECT_EQ(db.sql("select * from queue where bucket >= 0"), before);
    EXPECT_EQ(db.sql("select count(*) from attempt"), "0");
    EXPECT_EQ(db.sql("select count(*) from dead_letter"), "0");
    EXPECT_EQ(metrics.late_settles_dropped.value(), late + 1);
  }

  BufferTotals totals;
  model::NodeId node = node_number(1);
  telemetry::Metrics all;
  Metrics metrics{all};
  runtime::Wakeup wakeup{loop};
  pg::Link link;
  TestEndpoint endpoint;
  std::shared_ptr<Lane> lane;
  std::vector<Written> told;
  std::map<model::DeliveryId, Written> reported_as;
  std::unique_ptr<Settler> settler;
  runtime::TaskGroup attempts;
};

constexpr Verdict::Kind kKinds[] = {Verdict::Kind::delivered, Verdict::Kind::retrying,
                                    Verdict::Kind::dead_letter};

TEST_F(SettleTest, AnotherAttemptNumberChangesNothing) {
  const auto row = commit(endpoint, {"x"}).front();
  db.sql("update queue set attempts = 1 where bucket >= 0");
  for (const auto kind : kKinds) expect_late(settlement(row, kind));
}

TEST_F(SettleTest, AnotherOwnerChangesNothing) {
  const auto row = commit(endpoint, {"x"}).front();
  db.sql("update bucket_lease set owner = " + quoted(node_number(2).uuid));
  for (const auto kind : kKinds) expect_late(settlement(row, kind));
  db.sql("update bucket_lease set owner = null");
  for (const auto kind : kKinds) expect_late(settlement(row, kind));
}

TEST_F(SettleTest, AnotherEpochChangesNothingEvenIfItIsOursAgain) {
  const auto row = commit(endpoint, {"x"}).front();
  db.sql("update bucket_lease set epoch = 3");
  for (const auto kind : kKinds) expect_late(settlement(row, kind));
}

TEST_F(SettleTest, ARowThatIsGoneIsLate) {
  const auto row = commit(endpoint, {"x"}).front();
  db.sql("delete from queue where bucket >= 0");
  for (const auto kind : kKinds) expect_late(settlement(row, kind));
}

TEST_F(SettleTest, DeliveredLeavesTheQueueAndOneAttempt) {
  const auto rows = commit(endpoint, {"x", "other"});
  settle(settlement(rows[0], Verdict::Kind::delivered));
  EXPECT_THAT(told, ElementsAre(Written::now));
  EXPECT_EQ(db.sql("select id from queue where bucket >= 0"), rows[1].id.uuid.text());
  EXPECT_EQ(
      db.sql("select delivery_id, attempt, bucket, endpoint_id, event_id, tenant_id, outcome, status_code, "
             "error, total_us, preview, address, next_attempt_at, node_id, replay_id from attempt"),
      rows[0].id.uuid.text() + "|1|" + std::to_string(endpoint.bucket) + "|" + endpoint.id.uuid.text() + "|" +
          rows[0].event->id.uuid.text() + "|acme|delivered|204||1234|noted|127.0.0.1||" + node.uuid.text() +
          "|");
  EXPECT_EQ(db.sql("select count(*) from dead_letter"), "0");
}

TEST_F(SettleTest, ARetryIsDueLaterWithOneMoreAttempt) {
  const auto row = commit(endpoint, {"x"}).front();
  settle(settlement(row, Verdict::Kind::retrying));
  EXPECT_EQ(db.sql("select attempts, retry, position, extract(epoch from due_at)::bigint from queue where "
                   "bucket >= 0"),
            "1|t|0|2000000000");
  EXPECT_EQ(db.sql("select attempt, outcome, status_code, error, extract(epoch from next_attempt_at)::bigint "
                   "from attempt"),
            "1|retrying|503|http_503|2000000000");
}

TEST_F(SettleTest, ARetryOfAStrictEndpointKeepsItsPlace) {
  auto strict = make_endpoint("acme", receiver.url("/in"), [](registry::EndpointSettings& settings) {
    settings.ordering = model::Ordering::strict;
  });
  lane = make_lane(strict, 1);
  const auto rows = commit(strict, {"x", "y"});
  settle(settlement(rows[0], Verdict::Kind::retrying));
  EXPECT_EQ(db.sql("select position, retry, attempts from queue where bucket >= 0 order by position"),
            "1|f|1\n2|f|0");
}

TEST_F(SettleTest, ADeadDeliveryLeavesALetterAndAnAttempt) {
  const auto rows = commit(endpoint, {"x", "y"});
  settle(settlement(rows[0], Verdict::Kind::dead_letter));
  auto expired = settlement(rows[1], Verdict::Kind::dead_letter);
  expired.verdict.cause = Cause::expired;
  expired.facts.is_exchange = false;
  settle(std::move(expired));
  EXPECT_EQ(live_rows(), "0");
  EXPECT_EQ(db.sql("select cause, attempts, resolved_at from dead_letter order by cause"),
            "exhausted|1|\nexpired|0|");
  EXPECT_EQ(db.sql("select attempt, outcome from attempt order by attempt"), "0|dead_letter\n1|dead_letter");
}

TEST_F(SettleTest, OneBadItemAmongHundredsHarmsOnlyItself) {
  const auto rows = commit(endpoint, numbered(300));
  std::vector<Settlement> all;
  for (size_t i = 0; i < rows.size(); ++i) all.push_back(settlement(rows[i], kKinds[i % 3]));
  all[123].facts.preview = std::string("not UTF-8: \xff");
  settle(std::move(all));
  EXPECT_THAT(told, Each(Written::now));
  EXPECT_EQ(db.sql("select count(*), count(preview) from attempt"), "300|299");
  EXPECT_EQ(live_rows(), "100");
}

TEST_F(SettleTest, AnItemThatIsNeverTakenDoesNotHoldUpOthers) {
  const auto rows = commit(endpoint, numbered(50));
  // Its first attempt is on record already, which no settle of ours can have written.
  db.sql(
      "insert into attempt (delivery_id, attempt, bucket, endpoint_id, event_id, tenant_id, outcome, "
      "started_at, total_us, node_id, created_at) select id, 1, bucket, endpoint_id, event_id, tenant_id, "
      "'retrying', now(), 0, event_id, now() from queue where id = " +
      quoted(rows[20].id.uuid));
  std::vector<Settlement> all;
  for (const auto& row : rows) all.push_back(settlement(row, Verdict::Kind::delivered));
  settle(std::move(all));
  EXPECT_EQ(reported_as[rows[20].id], Written::rejected);
  EXPECT_EQ(live_rows(), "1");
  EXPECT_EQ(db.sql("select count(*) from attempt where outcome = 'delivered'"), "49");
}

// Rejected writes are counted with a sequence, because a rollback does not undo it.
constexpr const char* kDiskFull =
    "create sequence refusals; "
    "create function refuse() returns trigger language plpgsql as $$ begin perform nextval('refusals'); "
    "raise 'could not extend file: No space left on device' using errcode = '53100'; end $$; "
    "create trigger disk_full before insert on attempt for each row execute function refuse()";

TEST_F(SettleTest, WhatADiskThatWasFullRefusedIsWrittenOnceItHasRoom) {
  const auto rows = commit(endpoint, numbered(3));
  db.sql(kDiskFull);
  std::vector<Settlement> all;
  for (const auto& row : rows) all.push_back(settlement(row, Verdict::Kind::delivered));
  runtime::TaskGroup group;
  group.spawn(settle_all(std::move(all)));
  run(until_rejected_or_reported(7));
  EXPECT_THAT(told, IsEmpty());
  db.sql("drop trigger disk_full on attempt");
  run(end_of(group));
  EXPECT_THAT(told, Each(Written::now));
  EXPECT_EQ(live_rows(), "0");
}

TEST_F(SettleTest, AMissingPartitionIsMadeOnDemand) {
  const auto row = commit(endpoint, {"x"}).front();
  const std::string day = db.sql("select to_char(now() at time zone 'UTC', 'YYYYMMDD')");
  db.sql("drop table attempt_" + day + "; drop table dead_letter_" + day);
  settle(settlement(row, Verdict::Kind::dead_letter));
  EXPECT_THAT(told, ElementsAre(Written::now));
  EXPECT_EQ(db.sql("select count(*) from attempt_" + day), "1");
  EXPECT_EQ(db.sql("select count(*) from dead_letter_" + day), "1");
}

// A transaction that waits for the first row holds no other one yet, so two that settle the same rows cannot
// deadlock.
TEST_F(SettleTest, RowsAreLockedInOneOrderWhateverOrderTheyEndedIn) {
  for (const auto kind : kKinds) {
    SCOPED_TRACE(static_cast<int>(kind));
    const auto rows = commit(endpoint, {"1", "2"});
    support::SyncSql first(db.url());
    first("begin; select from queue where id = " + quoted(rows[0].id.uuid) + " for update");
    runtime::TaskGroup group;
    std::vector<Settlement> ended;
    ended.push_back(settlement(rows[1], kind));
    ended.push_back(settlement(rows[0], kind));
    group.spawn(settle_all(std::move(ended)));
    run(until_a_settlement_waits());
    EXPECT_NO_THROW(db.sql("select from queue where id = " + quoted(rows[1].id.uuid) + " for update nowait"));
    first("commit");
    run(end_of(group));
    EXPECT_THAT(told, Each(Written::now));
  }
}

TEST_F(SettleTest, APartitionThatCannotBeMadeNowDoesNotHoldTheConnection) {
  const auto row = commit(endpoint, {"x"}).front();
  db.sql("drop table attempt_" + db.sql("select to_char(now() at time zone 'UTC', 'YYYYMMDD')"));
  run(link.connection().run_one({nullptr, "select set_config('statement_timeout', '0', false)"}));
  support::SyncSql other(db.url());
  other("begin; lock table attempt in share update exclusive mode");
  runtime::TaskGroup group;
  std::vector<Settlement> ended;
  ended.push_back(settlement(row, Verdict::Kind::delivered));
  group.spawn(settle_all(std::move(ended)));
  run(until_a_settlement_waits());
  db.wait_for("select count(*) from pg_locks where not granted", "0");
  other("commit");
  run(end_of(group));
  EXPECT_THAT(told, ElementsAre(Written::now));
}

TEST_F(SettleTest, AnAnswerLostWithItsConnectionIsFoundOutAtTheSecondTry) {
  const auto rows = commit(endpoint, numbered(20));
  // The settle waits at the lock; then its connection goes, and it is repeated on the next one.
  support::SyncSql blocker(db.url());
  blocker("begin; lock table attempt in access exclusive mode");
  std::vector<Settlement> all;
  for (const auto& row : rows) all.push_back(settlement(row, Verdict::Kind::delivered));
  std::thread cutter([this, &blocker] {
    support::SyncSql look(db.url());
    look.wait_for(
        "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%attempt%' "
        "and datname = current_database()",
        "1");
    look(
        "select pg_terminate_backend(pid) from pg_stat_activity where wait_event_type = 'Lock' and datname = "
        "current_database()");
    blocker("commit");
  });
  settle(std::move(all));
  cutter.join();
  EXPECT_EQ(live_rows(), "0");
  EXPECT_EQ(db.sql("select count(*) from attempt where outcome = 'delivered'"), "20");
}

TEST_F(SettleTest, WhatIsNotWrittenWhenItStopsIsAbandoned) {
  const auto rows = commit(endpoint, {"being written", "waiting"});
  support::SyncSql blocker(db.url());
  blocker("begin; lock table attempt in access exclusive mode");
  attempts.spawn(settle_one(settlement(rows[0], Verdict::Kind::delivered)));
  run(until_a_settlement_waits());
  attempts.spawn(settle_one(settlement(rows[1], Verdict::Kind::delivered)));
  settler->abandon();
  run(link.stop());
  run(settler->stop());
  attempts.spawn(settle_one(settlement(rows[1], Verdict::Kind::delivered)));
  run(end_of(attempts));
  EXPECT_THAT(told, ElementsAre(Written::abandoned, Written::abandoned, Written::abandoned));
}

TEST_F(SettleTest, ADrainOutlastsALostConnection) {
  const auto row = commit(endpoint, {"x"}).front();
  support::SyncSql blocker(db.url());
  blocker("begin; lock table attempt in access exclusive mode");
  attempts.spawn(settle_one(settlement(row, Verdict::Kind::delivered)));
  run(until_a_settlement_waits());
  db.sql("select pg_terminate_backend(pid, 10000) from pg_locks where not granted");
  runtime::TaskGroup group;
  group.spawn(settler->drain(base::BootClock::now() + 60s));
  run(until_down());
  blocker("commit");
  run(end_of(group));
  EXPECT_EQ(settler->waiting(), 0u);
  EXPECT_EQ(live_rows(), "0");
}

}  // namespace
}  // namespace postrider::delivery
