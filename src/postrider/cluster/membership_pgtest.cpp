// Several nodes on one database: buckets are spread evenly, released and taken over, and never have two
// owners.
#include "postrider/cluster/membership.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "postrider/cluster/cluster_testing.hpp"
#include "support/database.hpp"
#include "support/run.hpp"

namespace postrider::cluster {
namespace {

using namespace std::chrono_literals;
using testing::IsEmpty;

// A node without shards. Its passes are made by hand.
struct TestMembership {
  TestMembership(runtime::Loop& loop, support::Database& db, uint8_t n, std::chrono::milliseconds lease_time)
      : link(loop, {.connect = pg::ConnectOptions::engine(db.url())}) {
    MembershipEvents events;
    events.taken = [this](int bucket, int64_t epoch) {
      EXPECT_TRUE(serving.emplace(bucket, epoch).second) << "taken twice";
    };
    events.lost = [this](int bucket) { serving.erase(bucket); };
    events.lost_everything = [this](int64_t term) {
      serving.clear();
      announced_term = term;
    };
    events.drain = [this, &loop](int bucket, std::chrono::milliseconds) { return drain(loop, bucket); };
    events.renewed = [] {};
    keeper = std::make_unique<Membership>(
        loop, link, lease, ids, metrics,
        MembershipOptions{.node_id = node_number(n), .name = "test", .lease = lease_time}, std::move(events));
    link.start();
  }

  runtime::Task<bool> drain(runtime::Loop& loop, int bucket) {
    drained.insert(bucket);
    runtime::Wakeup turn(loop);
    while (is_busy && !gives_up) co_await turn.wait_for(1ms);
    co_return !gives_up;
  }

  std::set<int> buckets() const {
    std::set<int> all;
    for (const auto& [bucket, epoch] : serving) all.insert(bucket);
    return all;
  }

  pg::Link link;
  LeaseClock lease;
  model::IdSource ids;
  telemetry::Metrics metrics;
  std::map<int, int64_t> serving;
  std::set<int> drained;
  int64_t announced_term = 0;
  bool is_busy = false, gives_up = false;
  std::unique_ptr<Membership> keeper;
};

struct MembershipTest : testing::Test {
  ~MembershipTest() override {
    for (const auto& each : keepers) {
      each->is_busy = false;
      run(each->keeper->stop());
      run(each->link.stop());
    }
  }
  template <class T>
  void run(runtime::Task<T> task) {
    support::run(loop, std::move(task));
  }

  TestMembership& join(std::chrono::milliseconds lease = 1h) {
    keepers.push_back(
        std::make_unique<TestMembership>(loop, db, static_cast<uint8_t>(keepers.size() + 1), lease));
    TestMembership& fresh = *keepers.back();
    run(fresh.link.wait_up(base::BootClock::now() + 30s));
    run(fresh.keeper->join());
    return fresh;
  }

  // While a node may send, it serves exactly the buckets that it owns in the table, so no bucket has two
  // owners.
  void expect_one_owner_each() {
    for (size_t i = 0; i < keepers.size(); ++i)
      for (const auto& [bucket, epoch] : keepers[i]->serving) {
        const std::string lease =
            db.sql("select owner, epoch from bucket_lease where bucket = " + std::to_string(bucket));
        const std::string held =
            node_number(static_cast<uint8_t>(i + 1)).uuid.text() + "|" + std::to_string(epoch);
        if (keepers[i]->lease.is_valid(base::BootClock::now())) {
          EXPECT_EQ(lease, held) << bucket;
        }
      }
  }

  runtime::Task<void> passes_until(std::function<bool()> condition) {
    runtime::Wakeup turn(loop);
    while (!condition()) {
      for (const auto& each : keepers) {
        if (silent.contains(each.get())) continue;
        auto pass = each->keeper->run_once();
        co_await pass;
        expect_one_owner_each();
      }
      co_await turn.wait_for(1ms);
    }
  }
  void pass_until(std::function<bool()> condition) { run(passes_until(std::move(condition))); }

  support::Database db;
  runtime::Loop loop;
  std::vector<std::unique_ptr<TestMembership>> keepers;
  std::set<TestMembership*> silent;
};

// The last sign of life of a node that died is when its buckets were last served.
TEST_F(MembershipTest, ATakeoverNotesForHowLongNoNodeServedTheBucket) {
  const auto all = static_cast<size_t>(support::buckets);
  TestMembership& first = join();
  pass_until([&] { return first.serving.size() == all; });
  EXPECT_EQ(db.sql("select count(*) from unserved_span"), "0") << "they were never served before";
  silent.insert(&first);
  first.serving.clear();  // it has died
  db.sql("update node set alive = false, heartbeat_at = now() - interval '1 hour'");
  TestMembership& second = join();
  pass_until([&] { return second.serving.size() == all; });
  EXPECT_EQ(
      db.sql("select count(distinct bucket), count(*), round(extract(epoch from min(until - since)) / 60) "
             "from unserved_span"),
      std::to_string(all) + "|" + std::to_string(all) + "|60");
}

TEST(FairShare, IsAsEvenAsItGets) {
  for (const int buckets : {1, 16, 64, 1024})
    for (int nodes = 1; nodes <= 20; ++nodes) {
      int sum = 0, least = buckets, most = 0;
      for (int rank = 0; rank < nodes; ++rank) {
        const int share = fair_share(buckets, nodes, rank);
        sum += share;
        least = std::min(least, share);
        most = std::max(most, share);
      }
      EXPECT_EQ(sum, buckets);
      EXPECT_LE(most - least, 1);
    }
}

TEST_F(MembershipTest, OneNodeTakesEverything) {
  TestMembership& only = join();
  pass_until([&] { return only.serving.size() == support::buckets; });
  EXPECT_FALSE(only.keeper->has_peers());
  EXPECT_TRUE(only.lease.is_valid(base::BootClock::now()));
  EXPECT_TRUE(only.ids.is_ready());
}

TEST_F(MembershipTest, NodesThatJoinGetTheirShareAfterItWasDrained) {
  TestMembership& first = join();
  pass_until([&] { return first.serving.size() == 16; });
  first.is_busy = true;
  TestMembership& second = join();
  pass_until([&] { return first.drained.size() == 8; });
  EXPECT_EQ(first.serving.size(), 16u) << "nothing is let go while it is being drained";
  EXPECT_THAT(second.buckets(), IsEmpty());
  first.is_busy = false;
  pass_until([&] { return first.serving.size() == 8 && second.serving.size() == 8; });
  EXPECT_TRUE(first.keeper->has_peers());
  TestMembership& third = join();
  pass_until(
      [&] { return first.serving.size() == 6 && second.serving.size() == 5 && third.serving.size() == 5; });
  for (const auto& [bucket, epoch] : third.serving) EXPECT_GE(epoch, 2) << "each new owner is a new epoch";
}

TEST_F(MembershipTest, ABucketThatCouldNotBeDrainedIsKeptAndGivenLater) {
  TestMembership& first = join();
  pass_until([&] { return first.serving.size() == 16; });
  first.gives_up = true;
  TestMembership& second = join();
  pass_until([&] { return first.drained.size() == 8; });
  for (int i = 0; i < 3; ++i) run(first.keeper->run_once());
  EXPECT_EQ(first.serving.size(), 16u);
  EXPECT_EQ(db.sql("select count(*) from bucket_lease where owner = " + quoted(node_number(1).uuid)), "16");
  first.gives_up = false;
  pass_until([&] { return first.serving.size() == 8 && second.serving.size() == 8; });
}

TEST_F(MembershipTest, ANodeThatLeavesLetsGoAtOnce) {
  TestMembership& first = join();
  TestMembership& second = join();
  pass_until([&] { return first.serving.size() == 8 && second.serving.size() == 8; });
  run(second.keeper->stop());
  silent.insert(&second);
  EXPECT_THAT(second.buckets(), IsEmpty());
  EXPECT_FALSE(second.lease.is_valid(base::BootClock::now()));
  pass_until([&] { return first.serving.size() == 16; });
}

TEST_F(MembershipTest, ANodeThatFallsSilentIsBuriedAndLosesEverythingWhenItComesBack) {
  TestMembership& first = join(1500ms);
  TestMembership& second = join(1500ms);
  pass_until([&] { return first.serving.size() == 8 && second.serving.size() == 8; });
  silent.insert(&second);
  pass_until([&] { return first.serving.size() == 16; });
  EXPECT_FALSE(second.lease.is_valid(base::BootClock::now())) << "it may still send";
  const auto before = first.serving;
  silent.clear();
  pass_until([&] {
    return first.serving.size() == 8 && second.serving.size() == 8 &&
           second.lease.is_valid(base::BootClock::now());
  });
  for (const auto& [bucket, epoch] : second.serving) EXPECT_GT(epoch, before.at(bucket));
  EXPECT_EQ(second.announced_term, second.lease.term());
  EXPECT_GT(second.lease.term(), 0);
}

TEST_F(MembershipTest, ALeaseThatTheTableGivesToSomebodyElseIsDropped) {
  TestMembership& only = join();
  pass_until([&] { return only.serving.size() == 16; });
  db.sql("update bucket_lease set epoch = epoch + 1 where bucket = 3");
  run(only.keeper->run_once());
  pass_until([&] { return only.serving.size() == 16; });
  EXPECT_EQ(only.serving.at(3), 2);
}

TEST_F(MembershipTest, ABucketWhoseTakingWasNeverAnsweredIsServed) {
  TestMembership& only = join();
  db.sql("update bucket_lease set epoch = 7, owner = '" + node_number(1).uuid.text() + "' where bucket < 4");
  pass_until([&] { return only.serving.size() == 16; });
  EXPECT_EQ(only.serving.at(0), 7);
  EXPECT_EQ(only.serving.at(4), 1);
}

TEST_F(MembershipTest, BucketsOfANodeThatLeftNoTraceAreFreed) {
  db.sql("update bucket_lease set epoch = 1, owner = gen_random_uuid()");
  TestMembership& only = join();
  pass_until([&] { return only.serving.size() == 16; });
  EXPECT_EQ(only.serving.at(0), 2);
}

TEST_F(MembershipTest, WhatAnotherServerSaysIsTakenUpAfresh) {
  TestMembership& node = join();
  pass_until([&] { return node.serving.size() == support::buckets; });
  // The server that was promoted has not received the last lease.
  db.sql("update bucket_lease set owner = null, epoch = 0 where bucket = 3");
  const auto before = node.serving;
  node.keeper->server_changed();
  EXPECT_THAT(node.serving, IsEmpty());
  EXPECT_FALSE(node.lease.is_valid(base::BootClock::now())) << "nothing is sent until it was heard from";
  pass_until([&] { return node.serving.size() == support::buckets; });
  EXPECT_EQ(node.serving.at(2), before.at(2));
  EXPECT_EQ(node.serving.at(3), 1);
  EXPECT_TRUE(node.lease.is_valid(base::BootClock::now()));
  EXPECT_EQ(node.announced_term, node.lease.term());
}

TEST_F(MembershipTest, AClockThatWasSetIsFollowed) {
  TestMembership& node = join(30ms);
  const auto off = [&] {
    const double theirs = std::stod(db.sql("select extract(epoch from clock_timestamp())"));
    return std::abs(std::chrono::duration<double>(node.ids.now().time_since_epoch()).count() - theirs);
  };
  for (const auto set_by : {-600s, 600s}) {
    node.ids.synchronise(0, node.ids.now() + set_by, base::BootClock::now());
    ASSERT_GT(off(), 500.0);
    for (int i = 0; i < 100 && off() > 500.0; ++i) run(node.keeper->run_once());
    EXPECT_LT(off(), 500.0);
  }
}

TEST_F(MembershipTest, NodesHaveSlotsOfTheirOwn) {
  join();
  join();
  join();
  EXPECT_EQ(db.sql("select slot from node order by slot"), "0\n1\n2");
}

TEST_F(MembershipTest, ANodeWithoutTheDatabaseStopsSendingByItself) {
  TestMembership& only = join(300ms);
  pass_until([&] { return only.serving.size() == 16; });
  run(only.link.stop());
  while (only.lease.is_valid(base::BootClock::now())) run(only.keeper->run_once());
  EXPECT_FALSE(only.lease.is_valid(base::BootClock::now()));
}

}  // namespace
}  // namespace postrider::cluster
