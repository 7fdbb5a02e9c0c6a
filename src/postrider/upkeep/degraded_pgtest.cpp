// Endpoints of which only some attempts fail.
#include "postrider/upkeep/health.hpp"
#include "postrider/upkeep/upkeep_testing.hpp"

namespace postrider::upkeep {
namespace {

class Degraded : public UpkeepTest {
 protected:
  // Creates this number of attempts in this clock hour, or in an earlier one.
  void attempts(const std::string& on, int count, int delivered, int hours_ago = 0) {
    db.sql(
        "insert into rollup (hour, tenant_id, endpoint_id, event_type, node_id, exchanges, delivered) select "
        "date_trunc('hour', now(), 'UTC') - interval '" +
        std::to_string(hours_ago) + " hours', tenant_id, id, 'a', gen_random_uuid(), " +
        std::to_string(count) + ", " + std::to_string(delivered) + " from endpoint where id = " + on);
  }
  int report(pg::Link& on) {
    const HealthOptions options{
        .disable_after = 100s, .first_notice_after = 1h, .degraded_below = 80, .degraded_attempts = 20};
    return run(report_degraded(on, options));
  }
  int report() { return report(link); }
  void report_failing() { run(report_health(link, {.disable_after = 100s, .first_notice_after = 10s})); }
  std::string events() {
    return db.sql("select string_agg(type, ' ' order by id) from event where tenant_id = 'postrider'");
  }
  std::string notice() { return db.sql("select kind, attempts, failed from notice"); }
  // The contacts got the notice that waits.
  void send() {
    db.sql("select * from take_notice('{}', 20); delete from notice");
    db.sql("update endpoint set notified_at = now() - interval '61 minutes'");
  }

  std::string endpoint = make_endpoint();
};

TEST_F(Degraded, ALowSuccessRateIsReportedOnceUntilItHasRecovered) {
  attempts(endpoint, 100, 79);
  EXPECT_EQ(report(), 1);
  EXPECT_EQ(report(), 0);
  EXPECT_EQ(events(), "endpoint.degraded");
  EXPECT_EQ(db.sql("select body::json->'data'->>'attempts', body::json->'data'->>'failed' from event"),
            "100|21");
  EXPECT_EQ(notice(), "degraded|100|21");
  send();
  attempts(endpoint, 50, 50);
  EXPECT_EQ(report(), 0) << "86 percent are not enough to have recovered from less than 80";
  attempts(endpoint, 100, 100);
  EXPECT_EQ(report(), 1);
  EXPECT_EQ(report(), 0);
  EXPECT_EQ(events(), "endpoint.degraded endpoint.recovered");
  EXPECT_EQ(db.sql("select kind from notice"), "recovered");
}

TEST_F(Degraded, TheRateAndTheAttemptsHaveALimitEach) {
  attempts(endpoint, 100, 80);
  EXPECT_EQ(report(), 0);
  const auto few = make_endpoint();
  attempts(few, 19, 0);
  EXPECT_EQ(report(), 0);
  attempts(few, 1, 0);
  EXPECT_EQ(report(), 1);
}

TEST_F(Degraded, OlderHoursDoNotCount) {
  attempts(endpoint, 1'000, 0, 2);
  EXPECT_EQ(report(), 0);
  // Of the hour before this one, the part that is less than an hour ago.
  attempts(endpoint, 1'000'000, 0, 1);
  EXPECT_EQ(report(), 1);
  EXPECT_EQ(db.sql("select abs(attempts - 1000000 * (1 - extract(epoch from created_at - date_trunc('hour', "
                   "created_at, 'UTC')) / 3600)) < 1000 from notice"),
            "t");
}

TEST_F(Degraded, WhatFailsCompletelyIsNotDegraded) {
  attempts(endpoint, 100, 50);
  db.sql("update endpoint set failing_since = now() - interval '91 seconds'");
  EXPECT_EQ(report(), 0);
  db.sql("update endpoint set failing_since = now() - interval '80 seconds'");
  EXPECT_EQ(report(), 1);
}

TEST_F(Degraded, AnOutageThatTheContactsKnowDoesNotCountAgain) {
  attempts(endpoint, 100, 50);
  db.sql("update endpoint set failing_since = now() - interval '11 seconds', failures = 10");
  report_failing();
  report_failing();
  EXPECT_EQ(db.sql("select kind from notice"), "failing");
  db.sql("update endpoint set failing_since = null");
  report_failing();
  EXPECT_EQ(report(), 0);
  db.sql("update endpoint set outage_ended_at = now() - interval '61 minutes'");
  EXPECT_EQ(report(), 1);
}

TEST_F(Degraded, ItStaysDegradedThroughShortFailuresAndRecoversFromALongOne) {
  attempts(endpoint, 100, 50);
  report();
  db.sql("update endpoint set failing_since = now() - interval '9 seconds', failures = 10");
  report_failing();
  EXPECT_EQ(events(), "endpoint.degraded") << "not also failing";
  db.sql("update endpoint set failing_since = now() - interval '11 seconds'");
  report_failing();
  EXPECT_EQ(db.sql("select kind from notice"), "failing");
  db.sql("update endpoint set failing_since = null");
  report_failing();
  EXPECT_EQ(events(), "endpoint.degraded endpoint.recovered");
  EXPECT_EQ(db.sql("select degraded_since from endpoint"), "");
}

TEST_F(Degraded, PausedEndpointsAndTheReservedTenantAreLeftOut) {
  const auto own = make_endpoint("postrider");
  attempts(endpoint, 100, 0);
  attempts(own, 100, 0);
  db.sql("update endpoint set status = 'paused' where id = " + endpoint);
  EXPECT_EQ(report(), 0);
  db.sql("update endpoint set status = 'active'; update tenant set status = 'paused' where id = 'acme'");
  EXPECT_EQ(report(), 0);
}

TEST_F(Degraded, TwoNodesReportItOnce) {
  attempts(endpoint, 100, 50);
  support::SyncSql other(db.url());
  other("begin; select report_degraded(" + endpoint + ", true, 100, 50)");
  EXPECT_EQ(report(), 0) << "another transaction is reporting it";
  other("commit");
  EXPECT_EQ(db.sql("select report_degraded(" + endpoint + ", true, 100, 50)"), "")
      << "it looked before the other one had committed";
  EXPECT_EQ(events(), "endpoint.degraded");
}

}  // namespace
}  // namespace postrider::upkeep
