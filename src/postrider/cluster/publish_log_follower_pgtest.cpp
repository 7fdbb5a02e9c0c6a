// The publish log is read with a snapshot cursor: whatever order transactions commit in, none is missed and
// none is found twice.
#include "postrider/cluster/publish_log_follower.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "support/database.hpp"
#include "support/run.hpp"

namespace postrider::cluster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

model::NodeId node(uint8_t n) {
  model::NodeId id;
  id.uuid.bytes[0] = n;
  return id;
}

struct PublishLogFollowerTest : testing::Test {
  PublishLogFollowerTest() : link(loop, {.connect = pg::ConnectOptions::engine(db.url())}) {
    PublishLogEvents events;
    events.found = [this](const PublishLogEvents::Found& range) {
      found.push_back(range.first.uuid.bytes[14] * 256 + range.first.uuid.bytes[15]);
      buckets.push_back(range.buckets);
    };
    events.missed = [this] { ++missed; };
    follower = std::make_unique<PublishLogFollower>(loop, link, node(1), std::move(events));
    link.start();
    run(link.wait_up(base::BootClock::now() + std::chrono::seconds(30)));
    run(follower->begin());
  }
  ~PublishLogFollowerTest() override { run(link.stop()); }

  template <class T>
  void run(runtime::Task<T> task) {
    support::run(loop, std::move(task));
  }
  runtime::Task<void> link_turn() {
    runtime::Wakeup turn(loop);
    co_await turn.wait_for(std::chrono::milliseconds(5));
  }
  std::vector<int> look() {
    found.clear();
    run(follower->run_once());
    return found;
  }

  static std::string line(int n, uint8_t publisher = 2) {
    base::Uuid id;
    id.bytes[14] = static_cast<uint8_t>(n / 256);
    id.bytes[15] = static_cast<uint8_t>(n % 256);
    return "insert into publish_log (node_id, first_id, last_id, buckets) values ('" +
           node(publisher).uuid.text() + "', '" + id.text() + "', '" + id.text() + "', '{3,5}')";
  }

  support::Database db;
  runtime::Loop loop;
  pg::Link link;
  std::vector<int> found;
  std::vector<std::vector<int>> buckets;
  int missed = 0;
  std::unique_ptr<PublishLogFollower> follower;
};

TEST_F(PublishLogFollowerTest, FindsWhatOthersCommittedOnce) {
  db.sql(line(1));
  db.sql(line(2, 1));
  EXPECT_THAT(look(), ElementsAre(1)) << "its own rows were handed over";
  EXPECT_THAT(buckets, ElementsAre(ElementsAre(3, 5)));
  EXPECT_THAT(look(), IsEmpty());
}

TEST_F(PublishLogFollowerTest, ACursorOfAnotherConnectionIsWorthNothing) {
  look();
  ASSERT_EQ(missed, 0);
  db.sql(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid = " +
      std::to_string(link.connection().server().backend_pid));
  while (link.connection_number() == 1 || !link.is_up()) run(link_turn());
  look();
  EXPECT_EQ(missed, 1) << "a crashed server gives ids again that the cursor has seen";
  look();
  EXPECT_EQ(missed, 1);
}

TEST_F(PublishLogFollowerTest, FindsATransactionThatCommitsLate) {
  support::SyncSql late(db.url()), later(db.url());
  late("begin");
  late(line(1));
  later("begin");
  later(line(2));
  db.sql(line(3));
  EXPECT_THAT(look(), ElementsAre(3));
  later("commit");
  EXPECT_THAT(look(), ElementsAre(2));
  db.sql(line(4));
  late("commit");
  auto both = look();
  std::sort(both.begin(), both.end());
  EXPECT_THAT(both, ElementsAre(1, 4));
  EXPECT_THAT(look(), IsEmpty());
}

TEST_F(PublishLogFollowerTest, DoesNotFindWhatWasRolledBack) {
  support::SyncSql undone(db.url());
  undone("begin");
  undone(line(1));
  EXPECT_THAT(look(), IsEmpty());
  undone("rollback");
  EXPECT_THAT(look(), IsEmpty());
}

TEST_F(PublishLogFollowerTest, FindsEachOfManyOverlappingTransactionsOnce) {
  constexpr int kSessions = 8, kSteps = 600;
  std::minstd_rand random(20'251);
  std::vector<std::unique_ptr<support::SyncSql>> sessions;
  std::vector<bool> is_open(kSessions);
  for (int i = 0; i < kSessions; ++i) sessions.push_back(std::make_unique<support::SyncSql>(db.url()));
  std::vector<int> all, expected;
  int n = 0;
  for (int step = 0; step < kSteps; ++step) {
    const auto s = static_cast<size_t>(random() % kSessions);
    support::SyncSql& session = *sessions[s];
    if (is_open[s]) {
      session("commit");
    } else {
      session("begin");
      session(line(++n));
      expected.push_back(n);
    }
    is_open[s] = !is_open[s];
    if (random() % 3 == 0) {
      const auto some = look();
      all.insert(all.end(), some.begin(), some.end());
    }
  }
  for (size_t s = 0; s < sessions.size(); ++s)
    if (is_open[s]) (*sessions[s])("commit");
  const auto rest = look();
  all.insert(all.end(), rest.begin(), rest.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, expected);
  EXPECT_EQ(missed, 0);
}

TEST(SnapshotCursor, IsReadFromItsText) {
  const auto cursor = pg::SnapshotCursor::parse("10:20:11,15");
  EXPECT_EQ(cursor.xmax, 20u);
  EXPECT_THAT(cursor.in_progress, ElementsAre("11", "15"));
  EXPECT_THAT(pg::SnapshotCursor::parse("10:10:").in_progress, IsEmpty());
}

}  // namespace
}  // namespace postrider::cluster
