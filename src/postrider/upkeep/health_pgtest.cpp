#include "postrider/upkeep/health.hpp"

#include "postrider/upkeep/upkeep_testing.hpp"

namespace postrider::upkeep {
namespace {

using testing::HasSubstr;

class Health : public UpkeepTest {
 protected:
  // It has failed for so much of a hundred seconds, that often.
  void fail(const std::string& endpoint, int percent, int failures = 10) {
    db.sql("update endpoint set failures = " + std::to_string(failures) +
           ", failing_since = now() - interval '" + std::to_string(percent) +
           " seconds' where id = " + endpoint);
  }
  // The contacts get a first notice after ten seconds, if `has_first`.
  int report(bool has_first = false) {
    const HealthOptions options{
        .disable_after = 100s, .first_notice_after = has_first ? 10s : 1h, .first_notice_failures = 3};
    return run(report_health(link, options));
  }
  std::string notice() { return db.sql("select kind, stage, attempts, failed from notice"); }
  std::string events() {
    return db.sql("select string_agg(type, ' ' order by id) from event where tenant_id = 'postrider'");
  }
  std::string status(const std::string& endpoint) {
    return db.sql("select status, reported_stage from endpoint where id = " + endpoint);
  }
};

TEST_F(Health, AnEndpointIsWarnedAboutAtEachStageAndThenDisabled) {
  const auto endpoint = make_endpoint();
  fail(endpoint, 1);
  EXPECT_EQ(report(), 1);
  EXPECT_EQ(report(), 0);
  for (const int percent : {51, 71, 91}) {
    fail(endpoint, percent);
    EXPECT_EQ(report(), 1) << percent;
    EXPECT_EQ(report(), 0) << percent;
  }
  EXPECT_EQ(status(endpoint), "active|90");
  fail(endpoint, 101);
  EXPECT_EQ(report(), 1);
  EXPECT_EQ(report(), 0);
  EXPECT_EQ(status(endpoint), "disabled|100");
  EXPECT_EQ(events(),
            "endpoint.failing endpoint.unhealthy endpoint.unhealthy endpoint.unhealthy endpoint.disabled");
  EXPECT_THAT(db.sql("select status_reason from endpoint where id = " + endpoint),
              HasSubstr("every attempt failed"));
  EXPECT_EQ(db.sql("select kind from control_log order by version desc limit 1"), "endpoint");
}

TEST_F(Health, NobodyIsDisabledUnwarnedHoweverLongItWasNotLookedAt) {
  const auto endpoint = make_endpoint();
  fail(endpoint, 1'000);
  for (int stage = 0; stage < 4; ++stage) EXPECT_EQ(report(), 1);
  EXPECT_EQ(status(endpoint), "active|90");
  EXPECT_EQ(report(), 1);
  EXPECT_EQ(status(endpoint), "disabled|100");
}

TEST_F(Health, TenFailuresAreTheLeast) {
  const auto endpoint = make_endpoint();
  fail(endpoint, 1'000, 9);
  EXPECT_EQ(report(), 1);
  EXPECT_EQ(report(), 0);
  EXPECT_EQ(status(endpoint), "active|1");
}

TEST_F(Health, ContactsGetAFirstNoticeAfterItsOwnTimeAndFailures) {
  const auto endpoint = make_endpoint();
  fail(endpoint, 9, 3);
  EXPECT_EQ(report(true), 1);
  EXPECT_EQ(notice(), "") << "the time is not over";
  fail(endpoint, 11, 2);
  EXPECT_EQ(report(true), 0) << "two failures are too few";
  fail(endpoint, 11, 3);
  EXPECT_EQ(report(true), 1);
  EXPECT_EQ(report(true), 0);
  EXPECT_EQ(notice(), "failing|2|3|3");
  EXPECT_EQ(events(), "endpoint.failing") << "operators know already";
  fail(endpoint, 51);
  EXPECT_EQ(report(true), 1);
  EXPECT_EQ(notice(), "warning|50|10|10");
}

TEST_F(Health, AnEndpointThatNoNodeLookedAtIsReportedFromTheFirstStageOn) {
  const auto endpoint = make_endpoint();
  fail(endpoint, 1'000);
  for (int stage = 0; stage < 6; ++stage) EXPECT_EQ(report(true), 1) << stage;
  EXPECT_EQ(status(endpoint), "disabled|100");
  EXPECT_EQ(events(),
            "endpoint.failing endpoint.unhealthy endpoint.unhealthy endpoint.unhealthy endpoint.disabled");
}

TEST_F(Health, APauseByPostriderIsReportedToContactsOnce) {
  const auto endpoint = make_endpoint(), by_hand = make_endpoint();
  fail(endpoint, 1);
  db.sql("update endpoint set status = 'paused', status_by = 'postrider', status_since = now() where id = " +
         endpoint + "; update endpoint set status = 'paused', status_by = 'customer' where id = " + by_hand);
  EXPECT_EQ(report(), 1);
  EXPECT_EQ(report(), 0);
  EXPECT_EQ(db.sql("select endpoint_id, kind, failed from notice"), endpoint.substr(1, 36) + "|paused|10");
  db.sql("update endpoint set status_since = now() + interval '1 second' where id = " + endpoint);
  EXPECT_EQ(report(), 1) << "it was resumed and paused again";
}

TEST_F(Health, TimePausedDoesNotCount) {
  const auto endpoint = make_endpoint();
  fail(endpoint, 90);
  report();
  db.sql("insert into pause_span (tenant_id, endpoint_id, since, until) values ('acme', " + endpoint +
         ", now() - interval '80 seconds', now() - interval '20 seconds')");
  EXPECT_EQ(report(), 0);
  db.sql("delete from pause_span");
  EXPECT_EQ(report(), 1);
}

TEST_F(Health, RecoveryAndDisablingByHandAreToldToo) {
  const auto endpoint = make_endpoint();
  fail(endpoint, 60);
  report();
  report();
  db.sql("update endpoint set failing_since = null where id = " + endpoint);
  EXPECT_EQ(report(), 1);
  EXPECT_EQ(status(endpoint), "active|0");
  db.sql("update endpoint set status = 'disabled', status_reason = 'gone' where id = " + endpoint);
  EXPECT_EQ(report(), 1);
  EXPECT_EQ(report(), 0);
  EXPECT_EQ(events(), "endpoint.failing endpoint.unhealthy endpoint.recovered endpoint.disabled");
}

TEST_F(Health, NothingIsToldAboutTheReservedTenantItself) {
  fail(make_endpoint("postrider"), 1'000);
  EXPECT_EQ(report(), 0);
}

TEST_F(Health, WhoSubscribesToTheReservedTenantGetsTheEvents) {
  const auto pager = make_endpoint("postrider", "{endpoint.*}");
  make_endpoint("postrider", "{delivery.*}");
  fail(make_endpoint(), 1);
  report();
  EXPECT_EQ(db.sql("select endpoint_id from queue where bucket >= 0"), pager.substr(1, 36));
  EXPECT_EQ(db.sql("select body::json->'data'->>'tenant_id', body::json->>'tenant_id', body::json->>'type' "
                   "from event"),
            "acme|postrider|endpoint.failing");
  EXPECT_EQ(
      db.sql("select count(*) from queue q join publish_log p on q.id between p.first_id and p.last_id and "
             "q.bucket = any (p.buckets)"),
      "1");
}

TEST_F(Health, ContactsGetOneNoticeWhoseNewsReplaceOlderOnes) {
  const auto endpoint = make_endpoint();
  fail(endpoint, 60);
  report();
  EXPECT_EQ(db.sql("select count(*) from notice"), "0");
  report();
  EXPECT_EQ(db.sql("select kind, stage, contacts, due_at <= now() from notice"),
            "warning|50|{ops@acme.example}|t");
  db.sql("update endpoint set notified_stage = 50, notified_at = now() where id = " + endpoint +
         "; delete from notice");
  fail(endpoint, 75);
  report();
  EXPECT_EQ(db.sql("select stage, due_at > now() + interval '50 minutes' from notice"), "70|t");
  db.sql("update endpoint set failing_since = null where id = " + endpoint);
  report();
  EXPECT_EQ(db.sql("select kind, due_at > now() + interval '50 minutes' from notice"), "recovered|t");
}

TEST_F(Health, WhoWasNotToldOfTheTroubleIsNotToldOfItsEnd) {
  const auto endpoint = make_endpoint();
  fail(endpoint, 60);
  report();
  report();
  db.sql("update endpoint set failing_since = null where id = " + endpoint);
  report();
  EXPECT_EQ(db.sql("select count(*) from notice"), "0");
}

TEST_F(Health, OnlyContactsThatWantNoticesGetThem) {
  db.sql(
      "update tenant set contacts = '[\"Ops@acme.example\", \"new@acme.example\", \"gone@acme.example\", "
      "\"https://acme.example/\"]'; insert into contact values ('acme', 'gone@acme.example', now(), now())");
  EXPECT_EQ(db.sql("select contacts_to_notify('acme')"), "{Ops@acme.example,https://acme.example/}");
  db.sql("update tenant set contacts = '[\"new@acme.example\"]'");
  const auto endpoint = make_endpoint();
  db.sql("update endpoint set status = 'disabled', status_by = 'postrider' where id = " + endpoint);
  report();
  EXPECT_EQ(db.sql("select reported_stage from endpoint"), "100");
  EXPECT_EQ(db.sql("select count(*) from notice"), "0");
}

TEST_F(Health, NobodyIsToldWhatTheirOwnPeopleDisabled) {
  const auto own = make_endpoint(), operators = make_endpoint();
  db.sql("update endpoint set status = 'disabled', status_by = 'customer' where id = " + own);
  db.sql("update endpoint set status = 'disabled', status_by = 'operator' where id = " + operators);
  report();
  EXPECT_EQ(db.sql("select endpoint_id, cause from notice"), operators.substr(1, 36) + "|operator");
}

TEST_F(Health, ANoticeIsTakenOnceAndOnlyForContactsThatStillWantIt) {
  const auto endpoint = make_endpoint();
  fail(endpoint, 60);
  report();
  report();
  const auto take = [this](const std::string& busy) {
    return db.sql("select outcome, contacts from take_notice('" + busy + "', 20)");
  };
  EXPECT_EQ(take("{acme}"), "");
  EXPECT_EQ(take("{}"), "send|{ops@acme.example}");
  EXPECT_EQ(take("{}"), "");
  db.sql("update notice set due_at = now(); update contact set unsubscribed_at = now()");
  EXPECT_EQ(take("{}"), "dropped|");
  EXPECT_EQ(db.sql("select count(*) from notice"), "0");
}

TEST_F(Health, DeadLettersAreToldOncePerEndpointAndMinute) {
  const auto one = make_endpoint(), two = make_endpoint(), own = make_endpoint("postrider");
  db.sql(
      "insert into dead_letter_minute select e, date_trunc('minute', now()) - m * interval '1 minute', c, 5 "
      "from "
      "unnest(array[" +
      one + "::uuid, " + two + ", " + own +
      "]) e, generate_series(0, 2) m, "
      "unnest(array['exhausted', 'rejected']) c");
  EXPECT_EQ(run(report_dead_letters(link)), 4);
  EXPECT_EQ(run(report_dead_letters(link)), 0);
  EXPECT_EQ(db.sql("select count(*), min(body::json->'data'->>'dead_letters') from event"), "4|10");
  EXPECT_EQ(db.sql("select count(distinct minute) from dead_letter_minute"), "1");
}

}  // namespace
}  // namespace postrider::upkeep
