// The functions that applications and nodes work with, from several sessions at once.
#include <gtest/gtest.h>

#include <future>
#include <string>

#include "support/database.hpp"

namespace postrider::inbox {
namespace {

constexpr int kMebibyte = 1 << 20;

struct InboxWorkTest : testing::Test {
  InboxWorkTest() { db.sql("insert into source (id, provider) values ('s', 'standard')"); }

  void store(int count, int body_bytes, const std::string& works = "{consume}") {
    db.sql(
        "with made as (select n, (left(replace(id_floor(now())::text, '-', ''), 12) || lpad(to_hex(n), 20, "
        "'0'))::uuid as id from generate_series(1, " +
        std::to_string(count) +
        ") n), stored as (insert into inbox (id, source_id, bucket, headers, body) select id, 's', n % 16, "
        "'{}', repeat('x', " +
        std::to_string(body_bytes) +
        ") from made) insert into inbox_queue (id, work, bucket, source_id, is_ordered, due_at) select id, "
        "w, n % 16, 's', false, now() from made cross join unnest('" +
        works + "'::text[]) w order by n");
  }

  // The number of messages that a claim of a thousand returns.
  std::string claimed(const std::string& worker = "c") {
    return db.sql("select count(body) from inbox_claim('" + worker + "', 's', 1000, '1 minute')");
  }
  std::string statuses() {
    return db.sql("select string_agg(distinct status, ',' order by status) from inbox");
  }

  // One session ends its work and has not committed when the other ends its own.
  void end_at_once(const std::string& first, const std::string& second) {
    support::SyncSql late(db.url());
    std::future<std::string> ended;
    support::SyncSql early(db.url());  // closed before the other one is waited for, whatever happens
    early("begin");
    EXPECT_EQ(early(first), "3");
    ended = std::async(std::launch::async, [&late, &second] { return late(second); });
    db.wait_for(
        "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = "
        "'Lock'",
        "1");
    early("commit");
    EXPECT_EQ(ended.get(), "3");
  }

  support::Database db;
};

constexpr const char* kFinishForwards = "select inbox_finish('forward', 'f', array(select id from inbox))";
constexpr const char* kAck =
    "select inbox_ack('c', array(select public_id_of('msg', id) from inbox order by id desc))";

TEST_F(InboxWorkTest, AMessageIsDoneWhenBothKindsOfItsWorkEndAtOnce) {
  for (const bool is_forwarded_first : {true, false}) {
    db.sql("delete from inbox");
    store(3, 10, "{consume,forward}");
    ASSERT_EQ(claimed(), "3");
    ASSERT_EQ(db.sql("select count(*) from inbox_take('forward', 'f', 's', 10, '1 minute', 1000)"), "3");
    if (is_forwarded_first)
      end_at_once(kFinishForwards, kAck);
    else
      end_at_once(kAck, kFinishForwards);
    EXPECT_EQ(statuses(), "done") << is_forwarded_first;
    EXPECT_EQ(db.sql("select count(*) from inbox where event_id = public_id_of('msg', id)"), "3");
  }
}

TEST_F(InboxWorkTest, AMessageWithOtherWorkStaysPending) {
  store(1, 10, "{consume,forward}");
  ASSERT_EQ(claimed(), "1");
  EXPECT_EQ(db.sql(kAck), "1");
  EXPECT_EQ(statuses(), "pending");
}

TEST_F(InboxWorkTest, AClaimWaitsForNobodyToGiveAMessageUp) {
  store(2, 10);
  db.sql("update inbox_queue set attempts = 8, leased_by = 'late' where source_id = 's'");
  support::SyncSql late(db.url());
  late("begin");
  const std::string held = late(
      "select public_id_of('msg', id) from inbox order by id limit 1 for update");  // as an acknowledgement
                                                                                    // begins
  db.sql("set statement_timeout = '30s'");
  EXPECT_EQ(claimed(), "0");
  EXPECT_EQ(statuses(), "dead,pending");
  EXPECT_EQ(late("select inbox_ack('late', array['" + held + "'])"), "1");
  late("commit");
  EXPECT_EQ(statuses(), "dead,done");
}

// A consumer claims and acknowledges messages in one transaction, while a slow one whose lease has expired
// acknowledges the same messages.
TEST_F(InboxWorkTest, ALateAnswerAndTheNextClaimDoNotDeadlock) {
  struct Answer {
    std::string call, result;
  };
  const Answer ack{"inbox_ack('late', array(select public_id_of('msg', id) from inbox))", "0"};
  const Answer nack{"inbox_nack('late', (select public_id_of('msg', id) from inbox), 'too slow')", ""};
  for (const Answer& answer : {ack, nack}) {
    db.sql("delete from inbox_queue; delete from inbox");
    store(1, 10);
    db.sql("update inbox_queue set attempts = 1, leased_by = 'late' where source_id = 's'");
    support::SyncSql next(db.url()), late(db.url());
    next("begin");
    EXPECT_EQ(next("select count(*) from inbox_claim('c', 's', 10, '1 minute')"), "1");
    late("begin; set local statement_timeout = '30s'");
    EXPECT_EQ(late("select " + answer.call), answer.result) << "and does not wait for the claim";
    late("commit");
    EXPECT_EQ(next(kAck), "1");
    next("commit");
    EXPECT_EQ(statuses(), "done");
  }
}

TEST_F(InboxWorkTest, AnAnswerInTimeWaitsForAnExtensionOfItsLease) {
  store(3, 10);
  ASSERT_EQ(claimed(), "3");
  end_at_once(
      "select inbox_extend('c', array(select public_id_of('msg', id) from inbox), interval '2 minutes')",
      kAck);
  EXPECT_EQ(statuses(), "done");
}

TEST_F(InboxWorkTest, AClaimIsBoundedInBytesAndLeasesWhatItAnswers) {
  store(40, kMebibyte);
  const std::string leased = "select count(leased_by), sum(attempts) from inbox_queue where source_id = 's'";
  EXPECT_EQ(claimed(), "16");
  EXPECT_EQ(db.sql(leased), "16|16");
  EXPECT_EQ(claimed(), "16");
  EXPECT_EQ(claimed(), "8");
  EXPECT_EQ(db.sql(leased), "40|40");
  EXPECT_EQ(claimed(), "0");
}

TEST_F(InboxWorkTest, AMessageThatIsLargerThanTheBoundComesAlone) {
  store(2, 20 * kMebibyte);
  EXPECT_EQ(claimed(), "1");
  EXPECT_EQ(claimed(), "1");
  EXPECT_EQ(claimed(), "0");
}

}  // namespace
}  // namespace postrider::inbox
