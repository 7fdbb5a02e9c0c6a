// Notices about dead letters, and the hour that all kinds of notices share.
#include "postrider/upkeep/health.hpp"
#include "postrider/upkeep/upkeep_testing.hpp"

namespace postrider::upkeep {
namespace {

using testing::HasSubstr;

class DeadLetterNotices : public UpkeepTest {
 protected:
  void dead_letters(const std::string& on, int count, const std::string& cause = "rejected") {
    db.sql("insert into dead_letter_minute values (" + on +
           ", date_trunc('minute', now()) - interval '1 minute', '" + cause + "', " + std::to_string(count) +
           ")");
    run(report_dead_letters(link));
  }
  std::string take() {
    return db.sql(
        "select outcome, tries, content::json->>'dead_letters', content::json->>'endpoint_count' "
        "from take_dead_letter_notice('{}', 20)");
  }
  // As the sender does when every contact was reached.
  void finish() {
    db.sql(
        "update dead_letter_notice n set content = null, contacts = null, tries = 0, due_at = (select "
        "n.notified_at + interval '1 day' where exists (select from dead_letter_unnotified))");
  }
  void pass(const std::string& time) {
    db.sql("update dead_letter_notice set due_at = due_at - interval '" + time +
           "', notified_at = notified_at - interval '" + time +
           "'; update endpoint set notified_at = notified_at - interval '" + time + "'");
  }

  std::string endpoint = make_endpoint();
};

TEST_F(DeadLetterNotices, TheFirstIsReportedAtOnceAndFurtherOnesADayLater) {
  dead_letters(endpoint, 1);
  EXPECT_EQ(take(), "send|1|1|1");
  EXPECT_EQ(take(), "");
  finish();
  const auto other = make_endpoint();
  dead_letters(endpoint, 2);
  dead_letters(other, 3, "expired");
  EXPECT_EQ(take(), "");
  pass("23 hours 59 minutes");
  EXPECT_EQ(take(), "");
  pass("1 minute");
  EXPECT_EQ(take(), "send|1|5|2");
  finish();
  pass("2 days");
  EXPECT_EQ(take(), "") << "there is nothing to report";
  dead_letters(endpoint, 1);
  EXPECT_EQ(take(), "send|1|1|1") << "after a quiet day it is the first again";
}

TEST_F(DeadLetterNotices, WhatADisabledEndpointLeavesIsNotReportedTwice) {
  dead_letters(endpoint, 7, "endpoint_disabled");
  EXPECT_EQ(take(), "");
  EXPECT_EQ(db.sql("select count(*) from event where type = 'delivery.dead_lettered'"), "1");
}

TEST_F(DeadLetterNotices, AnEndpointThatTheContactsHeardOfWithinTheHourIsLeftForTheNext) {
  const auto known = make_endpoint();
  db.sql("update endpoint set notified_at = now() - interval '59 minutes' where id = " + known);
  dead_letters(known, 5);
  EXPECT_EQ(take(), "waiting|0||");
  dead_letters(endpoint, 1);
  pass("5 minutes");
  db.sql("update endpoint set notified_at = now() - interval '59 minutes' where id = " + known);
  EXPECT_EQ(take(), "send|1|1|1");
  finish();
  pass("1 day");
  EXPECT_EQ(take(), "send|1|5|1");
}

TEST_F(DeadLetterNotices, TheHourOfAnEndpointCoversAllKinds) {
  db.sql("update endpoint set failing_since = now() - interval '1 hour', failures = 10, reported_stage = 1");
  const auto report = [this] {
    run(report_health(link, {.disable_after = 240h, .first_notice_after = 10s}));
  };
  const auto take_notice = [this] { return db.sql("select outcome, kind from take_notice('{}', 20)"); };
  report();
  // Both wait to be sent; the second one taken has to wait for an hour.
  dead_letters(endpoint, 1);
  EXPECT_EQ(take(), "send|1|1|1");
  EXPECT_EQ(take_notice(), "");
  db.sql("update endpoint set notified_at = now() - interval '60 minutes'");
  EXPECT_EQ(take_notice(), "send|failing");
  finish();
  dead_letters(endpoint, 1);
  db.sql("update dead_letter_notice set due_at = now()");
  EXPECT_EQ(take(), "waiting|0||");
  // A try for the contacts that were not reached is the same notice.
  db.sql("update notice set due_at = now()");
  EXPECT_EQ(take_notice(), "send|failing");
}

TEST_F(DeadLetterNotices, ANoticeThatReplacesOneThatIsBeingSentWaitsForAnHour) {
  db.sql("select put_notice(e, 'failing', 2, null, 5, 5) from endpoint e");
  EXPECT_EQ(db.sql("select outcome, kind from take_notice('{}', 20)"), "send|failing");
  // Some contacts were not reached and are due again in five minutes.
  db.sql("update notice set due_at = now() + interval '5 minutes'");
  db.sql("select put_notice(e, 'warning', 50, null, 5, 5) from endpoint e");
  EXPECT_EQ(db.sql("select kind, tries, due_at > now() + interval '59 minutes' from notice"), "warning|0|t");
}

TEST_F(DeadLetterNotices, TwoNodesDoNotBothTakeIt) {
  dead_letters(endpoint, 1);
  db.sql("set lock_timeout = '1s'");
  support::SyncSql other(db.url());
  EXPECT_EQ(other("begin; select outcome from take_dead_letter_notice('{}', 20)"), "send");
  EXPECT_EQ(take(), "") << "another node has it";
  other("commit");
  EXPECT_EQ(take(), "");
  finish();
  db.sql(
      "select put_notice(e, 'failing', 2, null, 5, 5) from endpoint e; update endpoint set notified_at = "
      "null; "
      "update notice set due_at = now()");
  EXPECT_EQ(other("begin; select outcome from take_notice('{}', 20)"), "send");
  EXPECT_EQ(db.sql("select outcome from take_notice('{}', 20)"), "");
  other("commit");
  EXPECT_EQ(db.sql("select outcome from take_notice('{}', 20)"), "");
}

TEST_F(DeadLetterNotices, ATenantWithoutContactsGetsNoneAndNothingPilesUp) {
  db.sql("update tenant set contacts = null");
  dead_letters(endpoint, 1);
  EXPECT_EQ(take(), "dropped|0||");
  EXPECT_EQ(take(), "");
  EXPECT_EQ(db.sql("select count(*) from dead_letter_unnotified"), "0");
}

TEST_F(DeadLetterNotices, ADeletedEndpointIsNotMentioned) {
  dead_letters(endpoint, 1);
  db.sql("update endpoint set status = 'deleted'");
  EXPECT_EQ(take(), "dropped|0||");
  EXPECT_EQ(db.sql("select count(*) from dead_letter_unnotified"), "0");
}

TEST_F(DeadLetterNotices, TheDailyLimitOfTheTenantCountsThemToo) {
  dead_letters(endpoint, 1);
  EXPECT_EQ(db.sql("select outcome, content from take_dead_letter_notice('{}', 0)"), "capped|");
  EXPECT_EQ(db.sql("select sum(dead_letters) from dead_letter_unnotified"), "1") << "they are not lost";
}

}  // namespace
}  // namespace postrider::upkeep
