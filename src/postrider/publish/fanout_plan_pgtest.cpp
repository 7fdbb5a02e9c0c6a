// Events that go where an earlier one went are written without looking their endpoints up, and still never go
// where the registry does not send them any more.
#include "postrider/publish/fanout_plan.hpp"

#include "postrider/publish/publish_testing.hpp"

namespace postrider::publish {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::SizeIs;
using Reason = Rejected::Reason;

struct FanoutPlanTest : PublishTest {
  FanoutPlanTest() {
    make_tenant("t1");
    record_change("t1");
  }

  void record_change(const std::string& tenant) {
    db.sql("select record_change('tenant', '" + tenant + "')");
  }

  // Only a change without a notification shows whether publishing reads the registry's rows.
  void unsubscribe_silently() { db.sql("update subscription set enabled = false"); }

  std::string endpoints_of_last_event() {
    return db.sql(
        "select string_agg(endpoint_id::text, ',' order by endpoint_id) from queue where bucket >= 0 and "
        "event_id = (select id from event order by id desc limit 1)");
  }
};

TEST_F(FanoutPlanTest, ASecondEventIsWrittenWithoutLookingEndpointsUp) {
  const auto endpoint = make_endpoint("t1");
  auto& on = publisher();
  ASSERT_THAT(text_of(publish(on, event("t1"))), EndsWith(R"("deliveries":1})"));
  unsubscribe_silently();
  EXPECT_THAT(text_of(publish(on, event("t1"))), EndsWith(R"("deliveries":1})"));
  EXPECT_EQ(endpoints_of_last_event(), endpoint.uuid.text());
}

// A server that was promoted without the last change may give the same revision to another one.
TEST_F(FanoutPlanTest, NothingIsKnownOfAnotherConnectionsServer) {
  make_endpoint("t1");
  auto& on = publisher();
  ASSERT_THAT(text_of(publish(on, event("t1"))), EndsWith(R"("deliveries":1})"));
  unsubscribe_silently();
  on.link.connection().close();
  EXPECT_THAT(text_of(publish(on, event("t1"))), EndsWith(R"("deliveries":0})"));
}

TEST_F(FanoutPlanTest, WritesAndHandsOverTheSameAsTheFirstTime) {
  make_endpoint("t1");
  make_endpoint("t1");
  auto& on = publisher();
  auto full = event("t1");
  full.version = "v2";
  full.subject = "invoice 7";
  full.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  full.occurred_at = now() - std::chrono::hours(1);
  ASSERT_TRUE(is_new(publish(on, full)));
  ASSERT_TRUE(is_new(publish(on, full)));
  const std::string of_event = "row(tenant_id, type, version, public_id, subject, traceparent, created_at)";
  EXPECT_EQ(db.sql("select count(*), count(distinct " + of_event + ") from event"), "2|1");
  const std::string of_queue =
      "row(bucket, endpoint_id, tenant_id, retry, position, attempts, right(id::text, 12), due_at = "
      "created_at)";
  EXPECT_EQ(db.sql("select count(*), count(distinct " + of_queue + ") from queue where bucket >= 0"), "4|2");
  EXPECT_EQ(
      db.sql("select count(*) from queue q join event e on e.id = q.event_id and left(e.id::text, 23) = "
             "left(q.id::text, 23)"),
      "4");
  ASSERT_THAT(on.handoff.deliveries, SizeIs(4));
  for (const auto& delivery : on.handoff.deliveries)
    EXPECT_EQ(db.sql("select e.body from queue q join event e on e.id = q.event_id where q.id = '" +
                     delivery.id.uuid.text() + "' and q.bucket = " + std::to_string(delivery.bucket)),
              delivery.event->body);
  EXPECT_EQ(db.sql("select count(*), count(distinct buckets) from publish_log"), "2|1");
}

// As from an outbox, where ids were given in an order of their own.
TEST_F(FanoutPlanTest, OtherNodesFindTheDeliveriesWhateverTheOrderOfTheirIds) {
  make_endpoint("t1");
  auto& on = publisher();
  ASSERT_TRUE(is_new(publish(on, event("t1"))));
  std::vector<NewEvent> given(3, event("t1"));
  for (auto at = given.rbegin(); at != given.rend(); ++at) at->given_id = model::EventId{ids.next()};
  for (const auto& answer : publish_all(on, given)) ASSERT_TRUE(is_new(answer));
  EXPECT_EQ(live_rows(), "4");
  EXPECT_EQ(db.sql("select count(*) from queue q where bucket >= 0 and not exists (select from publish_log l "
                   "where q.id between l.first_id and l.last_id and q.bucket = any (l.buckets))"),
            "0");
}

TEST_F(FanoutPlanTest, AChangeOfTheTenantIsSeenByTheNextEvent) {
  make_endpoint("t1");
  auto& on = publisher();
  ASSERT_TRUE(is_new(publish(on, event("t1"))));
  unsubscribe_silently();
  const auto later = make_endpoint("t1");
  record_change("t1");
  EXPECT_THAT(text_of(publish(on, event("t1"))), EndsWith(R"("deliveries":1})"));
  EXPECT_EQ(endpoints_of_last_event(), later.uuid.text());
  EXPECT_EQ(db.sql("select count(*) from event"), "2");
}

TEST_F(FanoutPlanTest, OneChangedTenantSpoilsNothingOfTheOthersInItsBatch) {
  make_tenant("t2");
  record_change("t2");
  make_endpoint("t1");
  make_endpoint("t2");
  auto& on = publisher();
  for (const auto& answer : publish_all(on, {event("t1"), event("t2")})) ASSERT_TRUE(is_new(answer));
  make_endpoint("t2");
  record_change("t2");
  const auto answers = publish_all(on, {event("t1"), event("t2"), event("t1", "order.made"), event("t2")});
  EXPECT_THAT(text_of(answers[0]), EndsWith(R"("deliveries":1})"));
  EXPECT_THAT(text_of(answers[1]), EndsWith(R"("deliveries":2})"));
  EXPECT_THAT(text_of(answers[2]), EndsWith(R"("deliveries":1})"));
  EXPECT_THAT(text_of(answers[3]), EndsWith(R"("deliveries":2})"));
  EXPECT_EQ(db.sql("select count(*) from event"), "6");
  EXPECT_EQ(live_rows(), "8");
  EXPECT_EQ(on.handoff.deliveries.size(), 8u);
}

TEST_F(FanoutPlanTest, ADeletedTenantTakesNoMore) {
  make_endpoint("t1");
  auto& on = publisher();
  ASSERT_TRUE(is_new(publish(on, event("t1"))));
  db.sql("update tenant set status = 'deleted'");
  record_change("t1");
  EXPECT_TRUE(is_rejected(publish(on, event("t1")), Reason::unknown_tenant));
  EXPECT_EQ(db.sql("select count(*) from event"), "1");
}

TEST_F(FanoutPlanTest, TheTenantsLimitOfBytesHolds) {
  db.sql("update tenant set payload_bytes_max = 20");
  make_endpoint("t1");
  auto& on = publisher();
  ASSERT_TRUE(is_new(publish(on, event("t1"))));
  auto large = event("t1");
  large.data = R"({"amount":1234567890123})";
  EXPECT_TRUE(is_rejected(publish(on, large), Reason::too_large));
}

TEST_F(FanoutPlanTest, OrderedTenantsAreLookedUpEachTime) {
  make_endpoint("t1", {.ordering = "strict"});
  auto& on = publisher();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(is_new(publish(on, event("t1"))));
  EXPECT_EQ(live_rows("string_agg(position::text, ',' order by id)"), "1,2,3");
}

TEST_F(FanoutPlanTest, AnEventThatNobodyWantsStaysUnwanted) {
  auto& on = publisher();
  for (int i = 0; i < 2; ++i) EXPECT_THAT(text_of(publish(on, event("t1"))), EndsWith(R"("deliveries":0})"));
  EXPECT_EQ(db.sql("select count(*) from event"), "2");
  EXPECT_EQ(db.sql("select count(*) from publish_log"), "0");
}

TEST_F(FanoutPlanTest, AnotherVersionHasAnotherPlan) {
  make_endpoint("t1", {.versions = "'{v2}'"});
  auto& on = publisher();
  auto versioned = event("t1");
  versioned.version = "v2";
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(text_of(publish(on, event("t1"))), EndsWith(R"("deliveries":0})"));
    EXPECT_THAT(text_of(publish(on, versioned)), EndsWith(R"("deliveries":1})"));
  }
}

TEST(FanoutPlanCache, StartOverWhenTheyAreTooMany) {
  FanoutPlanCache plans(10);
  NewEvent event;
  event.tenant_id = "t1";
  for (int i = 0; i < 12; ++i) {
    event.type = "type" + std::to_string(i);
    plans.remember(event, {});
    EXPECT_NE(plans.find(event), nullptr);
  }
  event.type = "type0";
  EXPECT_EQ(plans.find(event), nullptr);
}

TEST(FanoutPlanCache, OfAnOlderRevisionAreNotFound) {
  FanoutPlanCache plans;
  NewEvent first, second;
  first.tenant_id = second.tenant_id = "t1";
  first.type = "a";
  second.type = "b";
  FanoutPlan plan;
  plan.revision = 1;
  plans.remember(first, plan);
  plan.revision = 2;
  plans.remember(second, plan);
  EXPECT_EQ(plans.find(first), nullptr);
  EXPECT_NE(plans.find(second), nullptr);
}

}  // namespace
}  // namespace postrider::publish
