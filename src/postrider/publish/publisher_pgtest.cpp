#include "postrider/publish/publisher.hpp"

#include "postrider/publish/publish.sql.hpp"
#include "postrider/publish/publish_testing.hpp"

namespace postrider::publish {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using Reason = Rejected::Reason;

TEST_F(PublishTest, MakesOneDeliveryPerEndpointHoweverManyPatternsMatch) {
  make_tenant("t1");
  make_endpoint("t1", {.patterns = "{invoice.paid,invoice.*,*}"});
  make_endpoint("t1", {.patterns = "{invoice.*}"});
  make_endpoint("t1", {.patterns = "{invoice,order.*,invoice.paid.late}"});
  auto& on = publisher();
  const auto answer = publish(on, event("t1"));
  ASSERT_TRUE(is_new(answer)) << text_of(answer);
  EXPECT_THAT(text_of(answer), EndsWith(R"("deliveries":2})"));
  EXPECT_EQ(live_rows(), "2");
  EXPECT_EQ(on.handoff.deliveries.size(), 2u);
}

TEST_F(PublishTest, StoresTheExactBytesAndHandsTheSameOver) {
  make_tenant("t1");
  make_endpoint("t1");
  auto& on = publisher();
  auto odd = event("t1");
  odd.data = R"({ "n":123456789012345678901234567890,"z":"\u0000\ud800" })";
  odd.id = "mine";
  odd.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  ASSERT_TRUE(is_new(publish(on, odd)));
  const auto& delivery = on.handoff.deliveries.at(0);
  EXPECT_THAT(delivery.event->body, HasSubstr("\"data\":" + std::string(odd.data) + "}"));
  EXPECT_EQ(delivery.event->public_id, "mine");
  EXPECT_EQ(db.sql("select body from event"), delivery.event->body);
  EXPECT_EQ(db.sql("select public_id, traceparent from event"), "mine|" + odd.traceparent);
  EXPECT_EQ(db.sql("select id || '|' || endpoint_id || '|' || bucket from queue where bucket >= 0"),
            delivery.id.uuid.text() + "|" + delivery.endpoint_id.uuid.text() + "|" +
                std::to_string(delivery.bucket));
}

TEST_F(PublishTest, QueuesForPausedEndpointsButNotForDisabledOrDeletedOnes) {
  make_tenant("t1");
  const auto paused = make_endpoint("t1", {.status = "paused"});
  make_endpoint("t1", {.status = "disabled"});
  make_endpoint("t1", {.status = "deleted"});
  auto& on = publisher();
  ASSERT_TRUE(is_new(publish(on, event("t1"))));
  EXPECT_EQ(live_rows("endpoint_id"), paused.uuid.text());
}

TEST_F(PublishTest, RespectsVersionsAndSwitchedOffSubscriptions) {
  make_tenant("t1");
  const auto any = make_endpoint("t1");
  const auto v2 = make_endpoint("t1", {.versions = "'{v2,v3}'"});
  const auto off = make_endpoint("t1");
  db.sql("update subscription set enabled = false where endpoint_id = '" + off.uuid.text() + "'");
  auto& on = publisher();
  ASSERT_TRUE(is_new(publish(on, event("t1"))));
  EXPECT_EQ(live_rows("endpoint_id"), any.uuid.text());
  auto versioned = event("t1");
  versioned.version = "v2";
  EXPECT_THAT(text_of(publish(on, versioned)), EndsWith(R"("deliveries":2})"));
  EXPECT_EQ(db.sql("select count(*) from queue where endpoint_id = '" + v2.uuid.text() + "'"), "1");
}

TEST_F(PublishTest, AcceptsAnEventThatNobodyWants) {
  make_tenant("t1");
  auto& on = publisher();
  EXPECT_THAT(text_of(publish(on, event("t1"))), EndsWith(R"("deliveries":0})"));
  EXPECT_EQ(db.sql("select count(*) from event"), "1");
  EXPECT_EQ(db.sql("select count(*) from publish_log"), "0");
}

TEST_F(PublishTest, ShowsTheTimeOfTheFactWhenGiven) {
  make_tenant("t1");
  make_endpoint("t1");
  auto& on = publisher();
  auto old = event("t1");
  old.occurred_at = base::parse_rfc3339("2020-01-02T03:04:05Z");
  EXPECT_THAT(text_of(publish(on, old)), HasSubstr(R"("created_at":"2020-01-02T03:04:05Z")"));
  EXPECT_THAT(db.sql("select body from event"), HasSubstr(R"("created_at":"2020-01-02T03:04:05Z")"));
  EXPECT_EQ(live_rows("created_at > now() - interval '1 hour'"), "t");
}

TEST_F(PublishTest, RefusesUnknownAndDeletedTenantsWithoutHarmToOthers) {
  make_tenant("t1");
  make_tenant("gone");
  make_endpoint("gone");
  db.sql("update tenant set status = 'deleted' where id = 'gone'");
  auto& on = publisher();
  auto keyed = event("nobody");
  keyed.id = "k";
  for (const bool with_key : {false, true}) {
    std::vector<NewEvent> events{event("nobody"), event("t1"), event("gone")};
    if (with_key) events.push_back(keyed);
    const auto answers = publish_all(on, events);
    EXPECT_TRUE(is_rejected(answers[0], Reason::unknown_tenant));
    EXPECT_TRUE(is_new(answers[1])) << text_of(answers[1]);
    EXPECT_TRUE(is_rejected(answers[2], Reason::unknown_tenant));
    if (with_key) {
      EXPECT_TRUE(is_rejected(answers[3], Reason::unknown_tenant));
    }
  }
  EXPECT_EQ(db.sql("select tenant_id, count(*) from event group by 1"), "t1|2");
  EXPECT_EQ(live_rows(), "0");
  EXPECT_EQ(db.sql("select count(*) from event_key"), "0");
}

TEST_F(PublishTest, MakesTenantsWhenToldTo) {
  make_tenant("gone");
  db.sql("update tenant set status = 'deleted' where id = 'gone'");
  auto& on = publisher({.create_tenants = true});
  auto keyed = event("new2");
  keyed.id = "k";
  const auto answers = publish_all(on, {event("new1"), event("gone"), keyed, event("new1")});
  EXPECT_TRUE(is_new(answers[0])) << text_of(answers[0]);
  EXPECT_TRUE(is_rejected(answers[1], Reason::unknown_tenant));
  EXPECT_TRUE(is_new(answers[2])) << text_of(answers[2]);
  EXPECT_TRUE(is_new(answers[3])) << text_of(answers[3]);
  EXPECT_EQ(db.sql("select count(*) from event"), "3");
  EXPECT_EQ(db.sql("select count(*) from control_log where kind = 'tenant'"), "2");
}

TEST_F(PublishTest, RefusesEventsThatBreakARuleWhoeverSendsThemAndMakesNoTenantForThem) {
  auto& on = publisher({.create_tenants = true});
  std::vector<NewEvent> events;
  for (const char* tenant : {"a\r\nb", "", ".a", "a\",\"x\":\"", "postrider"})
    events.push_back(event(tenant));
  events.push_back(event("org:7@eu.1"));
  events.push_back(event("acme", std::string(1 << 20, '.')));
  events.push_back(event("acme"));
  events.back().traceparent = "x\ny";
  const auto answers = publish_all(on, events);
  for (const size_t bad : {0, 1, 2, 3, 4, 6, 7})
    EXPECT_TRUE(is_rejected(answers[bad], Reason::invalid)) << bad << text_of(answers[bad]);
  EXPECT_TRUE(is_new(answers[5])) << text_of(answers[5]);
  EXPECT_EQ(db.sql("select string_agg(id, ' ' order by id) from tenant"), "org:7@eu.1 postrider");
  EXPECT_EQ(db.sql("select count(*) from event"), "1");
}

TEST_F(PublishTest, TheSchemaRefusesWhatWouldNotBeAHeader) {
  make_tenant("t1");
  auto& on = publisher();
  EXPECT_TRUE(is_new(publish(on, event("t1"))));
  for (const char* change : {"public_id = E'x\\r\\ny'", "traceparent = E'x\\ny'", "type = 'a\"b'"})
    EXPECT_ANY_THROW(db.sql("update event set " + std::string(change))) << change;
  EXPECT_ANY_THROW(make_tenant(".t"));
}

TEST_F(PublishTest, LimitsDataByTheTenantAndElseByTheDefault) {
  make_tenant("t1");
  make_tenant("small");
  db.sql("update tenant set payload_bytes_max = 10 where id = 'small'");
  auto& on = publisher({.data_bytes_max = 1000});
  const std::string data = "\"" + std::string(999, 'x') + "\"";
  auto large = event("t1");
  large.data = data;
  large.id = "k";
  const auto answers = publish_all(on, {event("small"), event("t1"), large});
  EXPECT_TRUE(is_rejected(answers[0], Reason::too_large));
  EXPECT_TRUE(is_new(answers[1]));
  EXPECT_TRUE(is_rejected(answers[2], Reason::too_large));
  EXPECT_EQ(db.sql("select count(*) from event_key"), "0") << "a refused event keeps no key";
}

TEST_F(PublishTest, CommitsWhatArrivesTogetherInFewTransactions) {
  make_tenant("t1");
  make_endpoint("t1");
  auto& on = publisher();
  runtime::TaskGroup group;
  int answered = 0;
  struct Client {
    static runtime::Task<void> publish(TestPublisher& publisher, NewEvent event, int& answered) {
      const auto answer = co_await publisher.publisher.publish(std::move(event));
      EXPECT_TRUE(is_new(answer));
      ++answered;
    }
    static runtime::Task<void> all(runtime::TaskGroup& group, TestPublisher& publisher, int& answered) {
      for (int i = 0; i < 300; ++i) group.spawn(publish(publisher, PublishTest::event("t1"), answered));
      co_await group.join();
    }
  };
  run(Client::all(group, on, answered));
  EXPECT_EQ(answered, 300);
  EXPECT_EQ(live_rows(), "300");
  EXPECT_EQ(db.sql("select count(*) from publish_log"), "2") << "the first alone, the rest with it";
  EXPECT_EQ(db.sql("select count(*) from queue q where bucket >= 0 and not exists (select from publish_log l "
                   "where q.id between l.first_id and l.last_id and q.bucket = any (l.buckets))"),
            "0");
}

TEST_F(PublishTest, AnswersAfterTheCommit) {
  make_tenant("t1");
  make_endpoint("t1");
  auto& on = publisher();
  // While the queue is locked nothing can commit, so no response and no handoff may happen.
  support::SyncSql locker(db.url());
  locker("begin; lock table queue in share mode");
  runtime::TaskGroup group;
  bool is_responded_to = false;
  struct Client {
    static runtime::Task<void> publish(TestPublisher& publisher, bool& is_responded_to) {
      co_await publisher.publisher.publish(PublishTest::event("t1"));
      is_responded_to = true;
    }
    static runtime::Task<void> blocked(runtime::TaskGroup& group, TestPublisher& publisher,
                                       bool& is_responded_to, runtime::Task<void> until_blocked) {
      group.spawn(publish(publisher, is_responded_to));
      co_await until_blocked;
    }
    static runtime::Task<void> join(runtime::TaskGroup& group) { co_await group.join(); }
  };
  run(Client::blocked(group, on, is_responded_to, until(loop, db, waiting_for("queue"), "1")));
  EXPECT_FALSE(is_responded_to);
  EXPECT_TRUE(on.handoff.deliveries.empty());
  locker("commit");
  run(Client::join(group));
  EXPECT_TRUE(is_responded_to);
  EXPECT_EQ(on.handoff.deliveries.size(), 1u);
}

TEST_F(PublishTest, RefusesWhenTooMuchIsWaiting) {
  make_tenant("t1");
  auto& on = publisher({.limits = {.waiting_items_max = 3}});
  const auto answers = publish_all(on, std::vector<NewEvent>(4, event("t1")));
  for (const auto& answer : answers) EXPECT_TRUE(is_rejected(answer, Reason::overloaded));
  EXPECT_TRUE(is_new(publish(on, event("t1"))));
}

TEST_F(PublishTest, HoldsATenantToItsPublishRate) {
  make_tenant("t1");
  make_tenant("slow");
  db.sql("update tenant set publish_rate_per_second = 0.001 where id = 'slow'");
  base::RateLimiter rates;
  auto& on = publisher({.rates = &rates});
  EXPECT_TRUE(is_new(publish(on, event("slow"))));
  const auto answers = publish_all(on, {event("slow"), event("t1")});
  EXPECT_TRUE(is_rejected(answers[0], Reason::too_fast));
  EXPECT_TRUE(is_new(answers[1]));
}

TEST(RateLimiter, AllowsASecondsWorthAndThenTheRate) {
  using std::chrono::milliseconds;
  base::RateLimiter rates;
  const base::SteadyTime start(std::chrono::hours(1));
  EXPECT_TRUE(rates.try_take("t", start));
  rates.set_rate("t", 4.0, start);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(rates.try_take("t", start));
  EXPECT_FALSE(rates.try_take("t", start));
  EXPECT_FALSE(rates.try_take("t", start + milliseconds(200)));
  EXPECT_TRUE(rates.try_take("t", start + milliseconds(250)));
  rates.set_rate("t", std::nullopt, start);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(rates.try_take("t", start));
}

TEST_F(PublishTest, SplitsWhatIsTooMuchForOneTransaction) {
  make_tenant("t1");
  make_endpoint("t1");
  auto& on = publisher({.limits = {.items_max = 10}});
  for (const auto& answer : publish_all(on, std::vector<NewEvent>(95, event("t1"))))
    EXPECT_TRUE(is_new(answer));
  EXPECT_EQ(db.sql("select count(*) from publish_log"), "10");
  EXPECT_EQ(live_rows(), "95");
}

TEST_F(PublishTest, GivesStrictEndpointsDensePositionsInCommitOrder) {
  make_tenant("t1");
  const auto strict = make_endpoint("t1", {.ordering = "strict"});
  const auto other = make_endpoint("t1", {.ordering = "strict"});
  make_endpoint("t1");
  auto& first = publisher({.limits = {.items_max = 5}});
  auto& second = publisher({.limits = {.items_max = 7}});
  struct Client {
    static runtime::Task<void> publish(TestPublisher& publisher) {
      for (int round = 0; round < 10; ++round) {
        const auto given =
            co_await publisher.publisher.publish_all(std::vector<NewEvent>(12, PublishTest::event("t1")));
        for (const auto& answer : given) EXPECT_TRUE(is_new(answer)) << text_of(answer);
      }
    }
    static runtime::Task<void> both(runtime::TaskGroup& group, TestPublisher& a, TestPublisher& b) {
      group.spawn(publish(a));
      group.spawn(publish(b));
      co_await group.join();
    }
  };
  runtime::TaskGroup group;
  run(Client::both(group, first, second));
  for (const auto& endpoint : {strict, other}) {
    const std::string rows = " from queue where endpoint_id = '" + endpoint.uuid.text() + "'";
    EXPECT_EQ(db.sql("select count(*), count(distinct position), min(position), max(position)" + rows),
              "240|240|1|240");
    // A batch keeps the order of arrival, and the positions of a transaction are contiguous.
    EXPECT_EQ(db.sql("select count(*) from (select max(position) - min(position) + 1 - count(*) as gap" +
                     rows + " group by xmin::text) g where gap <> 0"),
              "0");
    EXPECT_EQ(
        db.sql("select count(*) from (select event_id < lag(event_id) over (partition by xmin::text order "
               "by position) as is_back" +
               rows + ") b where is_back"),
        "0");
  }
  EXPECT_EQ(db.sql("select count(*) from queue where bucket >= 0 and position = 0"), "240");
}

TEST_F(PublishTest, MakesAMissingPartitionOnDemand) {
  make_tenant("t1");
  make_endpoint("t1");
  ids.synchronise(7, now() + std::chrono::hours(24 * 40), base::BootClock::now());
  auto& on = publisher();
  const auto answer = publish(on, event("t1"));
  EXPECT_TRUE(is_new(answer)) << text_of(answer);
  EXPECT_EQ(live_rows(), "1");
}

TEST_F(PublishTest, ABadEventHarmsOnlyItself) {
  make_tenant("t1");
  make_endpoint("t1");
  auto& on = publisher();
  std::vector<NewEvent> events(300, event("t1"));
  events[0].subject = "not UTF-8: \xff";
  events[137].subject = std::string("nul\0nul", 7);
  events[138].id = "keyed";
  events[299].version = "\xc3";
  const auto answers = publish_all(on, events);
  for (size_t i = 0; i < answers.size(); ++i) {
    if (i == 0 || i == 137 || i == 299) {
      EXPECT_TRUE(is_rejected(answers[i], Reason::invalid)) << i;
    } else {
      EXPECT_TRUE(is_new(answers[i])) << i << text_of(answers[i]);
    }
  }
  EXPECT_EQ(live_rows(), "297");
  EXPECT_EQ(on.handoff.deliveries.size(), 297u);
}

TEST_F(PublishTest, FindsSubscriptionsByTheirKeyInALargeRegistry) {
  db.sql(
      "insert into tenant (id) select 't' || n from generate_series(1, 20000) n;"
      "insert into endpoint (id, public_id, tenant_id, bucket, delivery_tail, url) select id, 'ep_' || n, "
      "'t' || "
      "n, 0, n::text, '' from (select n, gen_random_uuid() as id from generate_series(1, 20000) n) e;"
      "insert into subscription (tenant_id, pattern, endpoint_id) select tenant_id, 'a.*', id from "
      "endpoint;");
  const std::string prepare =
      std::string("set plan_cache_mode = force_generic_plan; prepare p as ") + sql::publish::statement.text;
  std::string nulls = "null";
  for (int i = 1; i < 22; ++i) nulls += ", null";
  for (const char* analyze : {"", "vacuum analyze tenant, endpoint, subscription;"}) {
    support::SyncSql session(db.url());
    if (*analyze != '\0') session("analyze tenant, endpoint, subscription");
    session(prepare);
    const std::string plan = session("explain execute p (" + nulls + ")");
    EXPECT_THAT(plan, HasSubstr("subscription_pkey"));
    EXPECT_THAT(plan, HasSubstr("endpoint_pkey"));
    EXPECT_THAT(plan, HasSubstr("tenant_pkey"));
    EXPECT_THAT(plan, Not(HasSubstr("Seq Scan on subscription")));
    EXPECT_THAT(plan, Not(HasSubstr("Seq Scan on endpoint ")));
  }
}

}  // namespace
}  // namespace postrider::publish
