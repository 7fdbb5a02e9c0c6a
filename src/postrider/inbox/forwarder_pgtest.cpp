// The results of a batch's messages, and which of them count as an attempt.
#include "postrider/inbox/forwarder.hpp"

#include <gtest/gtest.h>

#include <string>

#include "postrider/publish/publish_testing.hpp"

namespace postrider::inbox {
namespace {

constexpr int kMebibyte = 1 << 20;

class ForwarderTest : public publish::PublishTest {
 protected:
  ForwarderTest() {
    make_tenant("t1");
    db.sql(
        "insert into source (id, provider, consume, forward_tenant_id, forward_type) "
        "values ('s', 'standard', false, 't1', 'a.b')");
  }

  // Messages whose bodies have that many bytes, as JSON.
  void store(int count, int body_bytes = 100, const std::string& headers = "{}") {
    db.sql(
        "with made as (select n, (left(replace(id_floor(now())::text, '-', ''), 12) || "
        "left(md5(random()::text), 20))::uuid as id from generate_series(1, " +
        std::to_string(count) +
        ") n), stored as (insert into inbox (id, source_id, bucket, headers, body) select id, 's', n % 16, "
        "'" +
        headers + "', '{\"x\":\"' || repeat('x', " + std::to_string(body_bytes - 8) +
        ") || '\"}' from made) insert into inbox_queue (id, work, bucket, source_id, is_ordered, due_at) "
        "select id, 'forward', n % 16, 's', false, now() from made");
  }

  size_t forward(publish::TestPublisher& on) {
    Forwarder forwarder(loop, on.link, on.publisher, "f");
    return run(forwarder.forward_due(base::BootClock::now()));
  }

  // The number of remaining messages, how many of them are leased, and the sum of their attempts.
  std::string left() {
    return db.sql(
        "select count(*), count(leased_by), coalesce(sum(attempts), 0) from inbox_queue where source_id = "
        "'s'");
  }
};

TEST_F(ForwarderTest, MessagesThatFindThePublisherOverloadedKeepTheirAttempts) {
  store(5);
  auto& busy = publisher({.limits = {.waiting_items_max = 3}});
  EXPECT_EQ(forward(busy), 0u);
  EXPECT_EQ(left(), "5|0|0");
  EXPECT_EQ(
      db.sql("select count(*) from inbox_queue where source_id = 's' and due_at < now() + interval '5 s'"),
      "5")
      << "again soon";

  db.sql("update inbox_queue set due_at = now() where source_id = 's'");
  auto& idle = publisher();
  EXPECT_EQ(forward(idle), 5u);
  EXPECT_EQ(left(), "0|0|0");
  EXPECT_EQ(db.sql("select distinct status, attempts, event_id = public_id_of('msg', id) from inbox"),
            "done|1|t");
}

TEST_F(ForwarderTest, MessagesThatCameTooFastForTheirTenantKeepTheirAttempts) {
  db.sql("update tenant set publish_rate_per_second = 0.001 where id = 't1'");
  base::RateLimiter rates;
  auto& on = publisher({.rates = &rates});
  store(1);
  EXPECT_EQ(forward(on), 1u) << "the rate is known now";
  store(3);
  EXPECT_EQ(forward(on), 0u);
  EXPECT_EQ(left(), "3|0|0");
}

TEST_F(ForwarderTest, ASourceThatWasRefusedIsLeftAloneForAWhile) {
  store(5);
  auto& busy = publisher({.limits = {.waiting_items_max = 3}});
  Forwarder forwarder(loop, busy.link, busy.publisher, "f");
  const auto begun = base::BootClock::now();
  EXPECT_EQ(run(forwarder.forward_due(begun)), 0u);
  db.sql("delete from inbox_queue where source_id = 's'");
  store(1);
  EXPECT_EQ(run(forwarder.forward_due(begun + Forwarder::kHold - std::chrono::milliseconds(1))), 0u);
  EXPECT_EQ(left(), "1|0|0");
  EXPECT_EQ(run(forwarder.forward_due(base::BootClock::now() + Forwarder::kHold)), 1u);
  EXPECT_EQ(left(), "0|0|0");
}

TEST_F(ForwarderTest, ABatchIsBoundedInBytes) {
  auto& on = publisher({.data_bytes_max = 2 * kMebibyte});
  store(18, kMebibyte);
  EXPECT_EQ(forward(on), 8u);
  EXPECT_EQ(left(), "10|0|0") << "what did not fit was not taken";
  EXPECT_EQ(forward(on), 8u);
  EXPECT_EQ(forward(on), 2u);
}

TEST_F(ForwarderTest, HeadersThatCannotBeReadMakeThatMessageDead) {
  store(1, 100, R"({"content-type": 7})");
  store(1, 100, "[]");
  store(1);
  auto& on = publisher();
  EXPECT_EQ(forward(on), 3u);
  EXPECT_EQ(left(), "0|0|0");
  EXPECT_EQ(db.sql("select count(*) from inbox where status = 'dead' and last_error like '%headers%'"), "2");
  EXPECT_EQ(db.sql("select count(*) from inbox where status = 'done'"), "1");
}

// A consumer works on the messages, too, and has an open transaction that acknowledges the first of them. A
// forwarder that waited for it would go on when the server ends the consumer's session.
struct HeldMessageTest : ForwarderTest {
  void hold_first() {
    db.sql(
        "update source set consume = true; insert into inbox_queue (id, work, bucket, source_id, is_ordered, "
        "due_at, "
        "leased_by) select id, 'consume', bucket, 's', false, now() + interval '1 hour', 'w' from inbox");
    held = db.sql("select id from inbox order by id limit 1");
    consumer("set idle_in_transaction_session_timeout = '5min'");
    EXPECT_EQ(consumer("begin; select inbox_ack('w', array[public_id_of('msg', '" + held + "')])"), "1");
  }
  std::string events() { return db.sql("select count(*) from event where tenant_id = 't1'"); }
  std::string to_forward() {
    return db.sql(
        "select id, attempts, last_error from inbox_queue where source_id = 's' and work = 'forward'");
  }
  void make_due() {
    db.sql("update inbox_queue set due_at = now() where source_id = 's' and work = 'forward'");
  }

  support::SyncSql consumer{db.url()};
  std::string held;
};

TEST_F(HeldMessageTest, IsForwardedOnceAndFinishedWhenTheConsumerCommits) {
  store(3);
  hold_first();
  auto& on = publisher();
  EXPECT_EQ(forward(on), 3u);
  EXPECT_EQ(events(), "3");
  EXPECT_EQ(to_forward(), held + "|0|an open transaction of a consumer holds the message");
  consumer("commit");
  make_due();
  EXPECT_EQ(forward(on), 1u);
  EXPECT_EQ(events(), "3");
  EXPECT_EQ(db.sql("select status, event_id = public_id_of('msg', id) from inbox where id = '" + held + "'"),
            "done|t");
}

TEST_F(HeldMessageTest, ThatCannotBeForwardedIsDeadWhenTheConsumerCommits) {
  store(1, 100, "[]");
  hold_first();
  store(2);
  auto& on = publisher();
  forward(on);
  EXPECT_EQ(events(), "2") << "the others do not wait";
  EXPECT_EQ(db.sql("select status from inbox where id = '" + held + "'"), "pending");
  consumer("commit");
  make_due();
  forward(on);
  EXPECT_EQ(db.sql("select status, dead_work from inbox where id = '" + held + "'"), "dead|{forward}");
}

TEST_F(HeldMessageTest, WhoseTenantIsGoneUsesUpNoAttempt) {
  db.sql("update tenant set status = 'deleted' where id = 't1'");
  store(2);
  hold_first();
  auto& on = publisher();
  forward(on);
  EXPECT_EQ(db.sql("select id from inbox_queue where work = 'forward' and source_id = 's' and attempts = 0"),
            held);
}

}  // namespace
}  // namespace postrider::inbox
