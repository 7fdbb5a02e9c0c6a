#include "postrider/publish/publish_testing.hpp"

namespace postrider::publish {
namespace {

using Reason = Rejected::Reason;

NewEvent with_id(NewEvent event, std::string id) {
  event.id = std::move(id);
  return event;
}
NewEvent with_key(NewEvent event, std::string key) {
  event.idempotency_key = std::move(key);
  return event;
}
NewEvent with_data(NewEvent event, std::string_view data) {
  event.data = data;
  return event;
}

class KeysTest : public PublishTest {
 protected:
  KeysTest() {
    make_tenant("t1");
    make_endpoint("t1");
  }
};

TEST_F(KeysTest, ARepeatGetsTheFirstAnswerAndChangesNothing) {
  auto& on = publisher();
  for (const auto& given : {with_id(event("t1"), "mine"), with_key(event("t1"), "mine")}) {
    const auto first = publish(on, given);
    ASSERT_TRUE(is_new(first)) << text_of(first);
    make_endpoint("t1");
    const auto second = publish(on, given);
    EXPECT_TRUE(is_repeat(second)) << text_of(second);
    EXPECT_EQ(text_of(first), text_of(second));
  }
  EXPECT_EQ(db.sql("select count(*) from event"), "2");
  EXPECT_EQ(live_rows(), "3");
}

TEST_F(KeysTest, OtherContentIsAConflict) {
  auto& on = publisher();
  for (const auto& given : {with_id(event("t1"), "mine"), with_key(event("t1"), "mine")}) {
    ASSERT_TRUE(is_new(publish(on, given)));
    EXPECT_TRUE(is_rejected(publish(on, with_data(given, "{}")), Reason::conflict));
    EXPECT_TRUE(is_repeat(publish(on, given)));
  }
  EXPECT_EQ(db.sql("select count(*) from event"), "2");
}

TEST_F(KeysTest, IdsAndKeysAreNamespacesOfOneTenant) {
  make_tenant("t2");
  auto& on = publisher();
  EXPECT_TRUE(is_new(publish(on, with_id(event("t1"), "same"))));
  EXPECT_TRUE(is_new(publish(on, with_key(event("t1"), "same"))));
  EXPECT_TRUE(is_new(publish(on, with_id(event("t2"), "same"))));
  EXPECT_EQ(db.sql("select count(*) from event"), "3");
}

TEST_F(KeysTest, AnEventMayHaveBothAndLosesByEither) {
  auto& on = publisher();
  const auto both = with_key(with_id(event("t1"), "id1"), "key1");
  const auto first = publish(on, both);
  ASSERT_TRUE(is_new(first));
  EXPECT_TRUE(is_repeat(publish(on, both)));
  // Another key for the same event: the id decides, and the new key is not left pointing nowhere.
  const auto renewed = publish(on, with_key(both, "key2"));
  EXPECT_TRUE(is_repeat(renewed));
  EXPECT_EQ(text_of(renewed), text_of(first));
  // The same key for another event.
  EXPECT_TRUE(is_rejected(publish(on, with_id(both, "id2")), Reason::conflict));
  EXPECT_TRUE(is_new(publish(on, with_id(event("t1"), "id2")))) << "the loser's own id stayed free";
  EXPECT_EQ(db.sql("select count(*) from event"), "2");
}

TEST_F(KeysTest, TheSameKeyTwiceInOneBatchIsOneEvent) {
  auto& on = publisher();
  const auto given = with_id(event("t1"), "mine");
  const auto answers = publish_all(on, {given, with_data(given, "1"), given, event("t1")});
  EXPECT_TRUE(is_new(answers[0]));
  EXPECT_TRUE(is_rejected(answers[1], Reason::conflict));
  EXPECT_TRUE(is_repeat(answers[2]));
  EXPECT_EQ(text_of(answers[0]), text_of(answers[2]));
  EXPECT_TRUE(is_new(answers[3]));
  EXPECT_EQ(db.sql("select count(*) from event"), "2");
}

TEST_F(KeysTest, AFollowerIsPublishedWhenItsLeaderIsRefused) {
  auto& on = publisher({.data_bytes_max = 20});
  const auto given = with_id(event("t1"), "mine");
  const auto answers = publish_all(on, {with_data(given, R"("much longer than allowed")"), given, given});
  EXPECT_TRUE(is_rejected(answers[0], Reason::too_large));
  EXPECT_TRUE(is_new(answers[1])) << text_of(answers[1]);
  EXPECT_TRUE(is_repeat(answers[2])) << text_of(answers[2]);
}

runtime::Task<void> publish_into(TestPublisher& on, std::vector<NewEvent> events,
                                 std::vector<PublishResult>& answers) {
  answers = co_await on.publisher.publish_all(std::move(events));
}
runtime::Task<void> end_of(runtime::TaskGroup& group) {
  co_await group.join();
}

// A transaction that waits for the first key holds no other one yet, so two with the same keys cannot
// deadlock.
TEST_F(KeysTest, KeysAreTakenInOneOrderWhateverOrderTheyCameIn) {
  const std::string take =
      "insert into event_key (tenant_id, kind, key, event_id, request_hash, response) select 't1', 'id', "
      "key, "
      "gen_random_uuid(), '', '' from unnest(array['";
  auto& on = publisher();
  support::SyncSql other(db.url()), third(db.url());
  other("begin; " + take + "a']) key");
  std::vector<PublishResult> answers;
  runtime::TaskGroup group;
  group.spawn(publish_into(on, {with_id(event("t1"), "b"), with_id(event("t1"), "a")}, answers));
  run(until(loop, db, "select count(*) from pg_locks where not granted", "1"));
  EXPECT_NO_THROW(third("set lock_timeout = '200ms'; begin; " + take + "b']) key; rollback"));
  other("rollback");
  run(end_of(group));
  for (const auto& answer : answers) EXPECT_TRUE(is_new(answer)) << text_of(answer);
}

// The keys are taken by a later statement than the one that looks tenants up. The first event is there to
// have both prepared: only then the second one waits before it has its snapshot.
TEST_F(KeysTest, ATenantMadeBetweenTheLookAndTheKeyLosesNoEvent) {
  for (const bool create_tenants : {false, true}) {
    const std::string tenant = create_tenants ? "made-too" : "made";
    auto& on = publisher({.create_tenants = create_tenants});
    ASSERT_TRUE(is_new(publish(on, with_id(event("t1"), tenant))));
    support::SyncSql locker(db.url());
    locker("begin; lock table event_key in access exclusive mode");
    std::vector<PublishResult> answers;
    runtime::TaskGroup group;
    group.spawn(publish_into(on, {with_key(with_id(event(tenant), "a"), "b")}, answers));
    run(until(loop, db, waiting_for("event_key"), "1"));
    make_tenant(tenant);
    locker("commit");
    run(end_of(group));
    EXPECT_EQ(db.sql("select count(*) from event_key where response = ''"), "0");
    const auto again = publish(on, with_key(with_id(event(tenant), "a"), "b"));
    EXPECT_TRUE(std::holds_alternative<Published>(again)) << text_of(again);
    EXPECT_THAT(text_of(again), testing::HasSubstr(R"("deliveries":0})"));
    EXPECT_EQ(db.sql("select count(*) from event where tenant_id = '" + tenant + "'"), "1");
  }
}

// A row as that made it, in a database that was written to by an older version.
TEST_F(KeysTest, AKeyThatWasKeptWithoutAnAnswerIsTakenAgain) {
  auto& on = publisher();
  const auto given = with_key(with_id(event("t1"), "a"), "b");
  ASSERT_TRUE(is_new(publish(on, given)));
  for (const std::string hollow : {"kind in ('id', 'key')", "kind = 'id'"}) {
    SCOPED_TRACE(hollow);
    db.sql("update event_key set response = '' where " + hollow + "; delete from event_key where not (" +
           hollow + "); delete from event");
    const auto answers = publish_all(on, {given, with_data(given, "1"), given, event("t1")});
    EXPECT_TRUE(is_new(answers[0])) << text_of(answers[0]);
    EXPECT_TRUE(is_rejected(answers[1], Reason::conflict));
    EXPECT_TRUE(is_repeat(answers[2])) << text_of(answers[2]);
    EXPECT_EQ(text_of(answers[0]), text_of(answers[2]));
    EXPECT_TRUE(is_new(answers[3]));
    EXPECT_EQ(db.sql("select count(*) from event"), "2");
    EXPECT_EQ(db.sql("select count(*) from event_key where response <> ''"), "2");
  }
}

TEST_F(KeysTest, AKeyWithoutAnAnswerIsFreedBesideOneThatHasOne) {
  auto& on = publisher();
  const auto given = with_key(with_id(event("t1"), "a"), "b");
  const auto first = publish(on, given);
  db.sql("update event_key set response = '' where kind = 'key'");
  const auto again = publish(on, given);
  EXPECT_TRUE(is_repeat(again));
  EXPECT_EQ(text_of(again), text_of(first));
  EXPECT_EQ(db.sql("select string_agg(kind, ',') from event_key"), "id");
  EXPECT_EQ(db.sql("select count(*) from event"), "1");
}

TEST_F(KeysTest, TheSameKeysAtTwoPublishersAtOnceMakeEachEventOnce) {
  auto& first = publisher();
  auto& second = publisher();
  struct Client {
    static runtime::Task<void> publish(TestPublisher& on, std::vector<NewEvent> events,
                                       std::vector<std::string>& answers, int& fresh) {
      const auto given = co_await on.publisher.publish_all(std::move(events));
      for (const auto& answer : given) {
        EXPECT_TRUE(std::holds_alternative<Published>(answer)) << text_of(answer);
        fresh += is_new(answer) ? 1 : 0;
        answers.push_back(text_of(answer));
      }
    }
    static runtime::Task<void> both(TestPublisher& a, TestPublisher& b, std::vector<NewEvent> there,
                                    std::vector<NewEvent> back, int& fresh) {
      runtime::TaskGroup group;
      std::vector<std::string> answers_a, answers_b;
      group.spawn(publish(a, std::move(there), answers_a, fresh));
      group.spawn(publish(b, std::move(back), answers_b, fresh));
      co_await group.join();
      std::sort(answers_a.begin(), answers_a.end());
      std::sort(answers_b.begin(), answers_b.end());
      EXPECT_EQ(answers_a, answers_b);
    }
  };
  int fresh = 0;
  for (int round = 0; round < 20; ++round) {
    std::vector<NewEvent> there;
    for (int i = 0; i < 30; ++i)
      there.push_back(with_id(event("t1"), "r" + std::to_string(round) + "-" + std::to_string(i)));
    std::vector<NewEvent> back(there.rbegin(), there.rend());
    run(Client::both(first, second, there, back, fresh));
  }
  EXPECT_EQ(fresh, 600);
  EXPECT_EQ(db.sql("select count(*), count(distinct public_id) from event"), "600|600");
  EXPECT_EQ(live_rows(), "600");
  EXPECT_EQ(db.sql("select count(*) from event_key where response = ''"), "0");
}

}  // namespace
}  // namespace postrider::publish
