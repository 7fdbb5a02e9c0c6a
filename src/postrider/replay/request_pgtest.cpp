#include "postrider/replay/request.hpp"

#include "postrider/replay/replay_testing.hpp"

namespace postrider::replay {
namespace {

using Outcome = Single::Result;
using testing::HasSubstr;
using testing::StartsWith;

class SingleReplay : public ReplayTest {
 protected:
  model::EndpointId endpoint = make_endpoint();
  model::EventId event = make_event();
  model::DeliveryId dead = ended(event, endpoint, "dead_letter");
};

TEST_F(SingleReplay, MakesANewDeliveryOfTheSameEventWithAFreshId) {
  const Single made = replay(dead);
  ASSERT_EQ(made.outcome, Outcome::made);
  EXPECT_NE(made.delivery, dead);
  EXPECT_EQ(queued("id, event_id, endpoint_id, attempts, replay_id"),
            made.delivery.uuid.text() + "|" + event.uuid.text() + "|" + endpoint.uuid.text() + "|0|" +
                made.replay.uuid.text());
  EXPECT_EQ(db.sql("select abs(extract(epoch from id_time(id) - now())) < 60 from queue where bucket >= 0"),
            "t");
}

TEST_F(SingleReplay, ResolvesItsDeadLetterAndRemembersWhoAndWhy) {
  const Single made = replay(dead);
  EXPECT_EQ(db.sql("select resolution, resolved_at is not null from dead_letter"), "replayed|t");
  EXPECT_EQ(db.sql("select requested_by, reason, delivery_id, status, matched, queued from replay"),
            "key_1|lost|" + dead.uuid.text() + "|completed|1|1");
  EXPECT_EQ(db.sql("select origin_id, delivery_id from replayed"),
            dead.uuid.text() + "|" + made.delivery.uuid.text());
}

TEST_F(SingleReplay, IsAnnouncedToTheOwnerOfItsBucket) {
  const Single made = replay(dead);
  EXPECT_EQ(db.sql("select first_id, last_id, buckets from publish_log"),
            made.delivery.uuid.text() + "|" + made.delivery.uuid.text() + "|{" +
                std::to_string(model::bucket_of(endpoint, support::buckets)) + "}");
}

TEST_F(SingleReplay, JoinsAStrictEndpointAtTheEnd) {
  const auto strict = make_endpoint({.ordering = "strict"});
  const auto old = ended(event, strict, "dead_letter");
  db.sql("insert into endpoint_position values ('" + strict.uuid.text() + "', 41)");
  ASSERT_EQ(replay(old).outcome, Outcome::made);
  EXPECT_EQ(queued("position"), "42");
  EXPECT_EQ(db.sql("select position from endpoint_position"), "42");
}

TEST_F(SingleReplay, LeavesAPendingOriginalAlone) {
  const auto later = make_event();
  const auto pending = delivery_of(later, endpoint);
  db.sql(
      "insert into queue (bucket, id, event_id, endpoint_id, tenant_id, due_at, attempts, created_at) values "
      "(" +
      std::to_string(model::bucket_of(endpoint, support::buckets)) + ", " + quoted(pending.uuid) + ", " +
      quoted(later.uuid) + ", " + quoted(endpoint.uuid) + ", 'acme', '2999-01-01', 3, now())");
  ASSERT_EQ(replay(pending).outcome, Outcome::made);
  EXPECT_EQ(queued("count(*), max(attempts), max(extract(year from due_at))"), "2|3|2999");
}

TEST_F(SingleReplay, WaitsUntilItMayBeSent) {
  const registry::Caller who = caller();
  SingleRequest later{.tenant = "acme", .delivery = dead, .reason = "later"};
  later.not_before = ids.now() + 2h;
  ASSERT_EQ(run(replay_delivery(link, who, later)).outcome, Outcome::made);
  EXPECT_EQ(queued("due_at > now() + interval '1 hour', created_at = due_at"), "t|t");
}

TEST_F(SingleReplay, IsRefusedForAnInactiveEndpoint) {
  for (const char* status : {"disabled", "deleted"}) {
    db.sql(std::string("update endpoint set status = '") + status + "'");
    EXPECT_EQ(replay(dead).outcome, Outcome::endpoint_inactive) << status;
  }
  db.sql("update endpoint set status = 'paused'");
  EXPECT_EQ(replay(dead).outcome, Outcome::made);
}

TEST_F(SingleReplay, IsRefusedWhenTheEventIsGoneOrErased) {
  db.sql("update event set erased_at = now(), body = ''");
  EXPECT_EQ(replay(dead).outcome, Outcome::event_erased);
  db.sql("delete from event");
  EXPECT_EQ(replay(dead).outcome, Outcome::event_gone);
  EXPECT_EQ(queued(), "0");
  EXPECT_EQ(db.sql("select count(*) from dead_letter where resolved_at is null"), "1");
}

TEST_F(SingleReplay, OfAForeignTenantDoesNotExist) {
  EXPECT_EQ(replay(dead, "other").outcome, Outcome::unknown_delivery);
  EXPECT_EQ(replay({ids.next()}).outcome, Outcome::unknown_delivery);
}

TEST_F(SingleReplay, IsLimitedToTenASecondForOneKey) {
  int made = 0;
  while (replay(dead).outcome == Outcome::made) ++made;
  EXPECT_GE(made, 10);  // slow machines may see a second pass
  EXPECT_EQ(
      db.sql("select count(*) <= 10 from replay where created_at > (select max(created_at) from replay) - "
             "interval '1 second'"),
      "t");
  const registry::Caller other = caller("key_2");
  EXPECT_EQ(run(replay_delivery(link, other, {.tenant = "acme", .delivery = dead, .reason = "x"})).outcome,
            Outcome::made);
}

TEST_F(SingleReplay, WorksInSqlWithItsReasons) {
  const std::string made = db.sql("select replay_delivery('" + dead.public_id() + "', 'asked by phone')");
  db.sql("select create_requested_replay()");  // as a node does
  EXPECT_THAT(made, StartsWith("dlv_"));
  EXPECT_THAT(db.sql("select requested_by, reason from replay"), HasSubstr("sql:"));
  const auto rejection = [&](const std::string& call) {
    try {
      db.sql("select replay_delivery(" + call + ")");
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string("(made)");
  };
  EXPECT_THAT(rejection("'nonsense', 'x'"), HasSubstr("is not a delivery ID"));
  EXPECT_THAT(rejection("'" + dead.public_id() + "', ' '"), HasSubstr("reason is required"));
  EXPECT_THAT(rejection("'dlv_" + ids.next().hex() + "', 'x'"), HasSubstr("does not exist"));
  db.sql("update endpoint set status = 'disabled'");
  EXPECT_THAT(rejection("'" + dead.public_id() + "', 'x'"), HasSubstr("disabled or deleted"));
}

class RangeCount : public ReplayTest {};

TEST_F(RangeCount, FailedMeansUnresolvedDeadLettersOfActiveEndpoints) {
  const auto one = make_endpoint(), two = make_endpoint(), off = make_endpoint();
  for (int i = 0; i < 5; ++i) {
    const auto event = make_event(i < 2 ? "invoice.paid" : "order.sent");
    ended(event, one, "dead_letter");
    ended(event, two, "delivered");
    ended(event, off, "dead_letter");
  }
  db.sql("update endpoint set status = 'disabled' where id = " + quoted(off.uuid));
  EXPECT_EQ(count(last_hour(Scope::failed)), 5);
  Range typed = last_hour(Scope::failed);
  typed.event_types = {"invoice.*"};
  EXPECT_EQ(count(typed), 2);
  Range of_two = last_hour(Scope::failed);
  of_two.endpoint = two;
  EXPECT_EQ(count(of_two), 0);
  Range by_cause = last_hour(Scope::failed);
  by_cause.causes = {"rejected"};
  EXPECT_EQ(count(by_cause), 0);
  db.sql("update dead_letter set resolved_at = now(), resolution = 'discarded' where endpoint_id = " +
         quoted(one.uuid));
  EXPECT_EQ(count(last_hour(Scope::failed)), 0);
}

TEST_F(RangeCount, MissingMeansWantedAndNeverDelivered) {
  const auto one = make_endpoint(), narrow = make_endpoint({.patterns = "{order.*,order.sent}"});
  const auto first = make_event("order.sent"), second = make_event("invoice.paid");
  make_event("order.sent", "other");
  ended(first, one, "delivered");
  EXPECT_EQ(count(last_hour(Scope::missing)), 2);  // second for one, first for narrow
  EXPECT_EQ(count(last_hour(Scope::all)), 3);
  ended(first, narrow, "dead_letter");
  EXPECT_EQ(count(last_hour(Scope::missing)), 1);
  db.sql("update event set erased_at = now() where id = " + quoted(second.uuid));
  EXPECT_EQ(count(last_hour(Scope::missing)), 0);
}

TEST_F(RangeCount, HasBounds) {
  const auto endpoint = make_endpoint();
  ended(make_event(), endpoint, "dead_letter");
  Range before = last_hour(Scope::failed);
  before.until = ids.now() - 1min;
  EXPECT_EQ(count(before), 0);
  Range after = last_hour(Scope::all);
  after.since = ids.now() + 1min;
  after.until = ids.now() + 2min;
  EXPECT_EQ(count(after), 0);
}

}  // namespace
}  // namespace postrider::replay
