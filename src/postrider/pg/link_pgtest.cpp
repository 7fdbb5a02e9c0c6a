#include "postrider/pg/link.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "postrider/base/check.hpp"
#include "postrider/pg/pgtest_fixture.hpp"
#include "postrider/pg/pool.hpp"
#include "support/cluster.hpp"

namespace postrider::pg {
namespace {

using namespace std::chrono_literals;
using runtime::SteadyTime;
using runtime::Task;

constexpr Statement one{"test.one", "select 1"};

SteadyTime in(std::chrono::nanoseconds delay) {
  return base::BootClock::now() + delay;
}

struct LinkTest : ConnectedTest {
  LinkOptions quick() {
    LinkOptions chosen;
    chosen.connect = options();
    chosen.pause_min = 10ms;
    chosen.pause_max = 50ms;
    return chosen;
  }
};

Task<void> come_up(Link& link) {
  link.start();
  co_await link.wait_up(in(60s));
}

TEST_F(LinkTest, IsUnavailableAtOnceWhileDown) {
  Link link(loop, quick());
  EXPECT_FALSE(link.is_up());
  EXPECT_EQ(error_of(link.run(Batch(one, Params()))).kind(), Kind::unavailable);
  EXPECT_EQ(error_of(link.begin()).kind(), Kind::unavailable);
  EXPECT_EQ(error_of(link.wait_up(in(5ms))).kind(), Kind::unavailable);
}

TEST_F(LinkTest, ConnectsAgainAfterALossAndPreparesAfresh) {
  Link link(loop, quick());
  std::string story;
  link.on_up([&](const LinkUp& up) {
    story += "up " + std::to_string(up.connection_number) + (up.is_other_timeline ? " elsewhere;" : ";");
  });
  link.on_down([&](const Error&) { story += "down;"; });
  run(come_up(link));
  run(link.run_one(one));

  Task<std::vector<Rows>> sleeping = link.run(Batch({nullptr, "select pg_sleep(600)"}, Params()));
  kill_backend(link.connection());
  EXPECT_EQ(error_of(std::move(sleeping)).kind(), Kind::unknown);
  EXPECT_FALSE(link.is_up());
  EXPECT_EQ(run(link.run(Batch(one, Params()), in(60s))).size(), 1U);
  EXPECT_EQ(story, "up 1;down;up 2;");
  run(link.stop());
}

TEST_F(LinkTest, SurvivesARestartOfTheServer) {
  support::Cluster& cluster = support::Cluster::get();
  if (!cluster.is_own()) GTEST_SKIP() << "not our server";
  Link link(loop, quick());
  run(come_up(link));
  cluster.stop();
  EXPECT_EQ(error_of(link.run(Batch(one, Params()))).kind(), Kind::unknown);
  EXPECT_EQ(error_of(link.wait_up(in(30ms))).kind(), Kind::unavailable);
  EXPECT_FALSE(link.last_error().empty());
  cluster.start();
  run(link.wait_up(in(60s)));
  EXPECT_EQ(run(link.run_one(one)).get<int32_t>(0, 0), 1);
  run(link.stop());
}

Task<void> close_once_up(Link& link) {
  co_await link.wait_up(in(60s));
  link.connection().close();
}

Task<void> number_once_up(Link& link, SteadyTime deadline, uint64_t& number) {
  try {
    co_await link.wait_up(deadline);
    number = link.connection_number();
  } catch (const Error& error) {
    ADD_FAILURE() << error.what();
  }
}

Task<void> lose_it_before_the_second(Link& link, uint64_t& number_of_second) {
  runtime::TaskGroup group;
  group.spawn(close_once_up(link));
  group.spawn(number_once_up(link, in(60s), number_of_second));
  link.start();
  co_await group.join();
}

TEST_F(LinkTest, WhoeverFindsItLostAlreadyWaitsForTheNextConnection) {
  Link link(loop, quick());
  uint64_t number_of_second = 0;
  run(lose_it_before_the_second(link, number_of_second));
  EXPECT_EQ(number_of_second, 2U);
  run(link.stop());
}

// A listening socket that never accepts.
struct Silence {
  Silence() : socket(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    const bool is_ready =
        bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0 && listen(socket, 16) == 0;
    CHECK(is_ready);
    getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
    port = ntohs(address.sin_port);
  }
  ~Silence() { close(socket); }
  int socket;
  int port = 0;
};

TEST_F(LinkTest, AServerThatNeverAnswersIsGivenUpInTime) {
  const Silence silence;
  ConnectOptions chosen = options();
  chosen.url = "host=127.0.0.1 user=nobody port=" + std::to_string(silence.port);
  chosen.connect_timeout = 20ms;
  EXPECT_EQ(error_of(Connection::open(loop, chosen)).kind(), Kind::unavailable);
}

Task<void> start_and_stop(Link& link) {
  link.start();
  co_await link.stop();
}

TEST_F(LinkTest, StopDoesNotWaitForAConnectionUnderWay) {
  const Silence silence;
  LinkOptions chosen = quick();
  chosen.connect.url = "host=127.0.0.1 user=nobody port=" + std::to_string(silence.port);
  chosen.connect.connect_timeout = 0ms;
  Link link(loop, chosen);
  run(start_and_stop(link));
  EXPECT_FALSE(link.is_up());
}

TEST_F(LinkTest, StopEndsWhatWaits) {
  Link link(loop, quick());
  run(come_up(link));
  Task<std::vector<Rows>> sleeping = link.run(Batch({nullptr, "select pg_sleep(600)"}, Params()));
  run(link.stop());
  EXPECT_EQ(error_of(std::move(sleeping)).kind(), Kind::unknown);
  EXPECT_EQ(error_of(link.wait_up(in(60s))).kind(), Kind::unavailable);
}

TEST_F(LinkTest, AConnectionThatDoesNotAnswerIsClosedAtTheDeadline) {
  LinkOptions chosen = quick();
  chosen.connect.response_timeout = chosen.connect.statement_timeout = 0ms;
  Link link(loop, chosen);
  run(come_up(link));
  const int pid = link.connection().server().backend_pid;
  {
    Task<std::vector<Rows>> sleeping = link.run(Batch({nullptr, "select pg_sleep(600)"}, Params()));
    const AnswerDeadline answer(link, in(20ms));
    EXPECT_EQ(error_of(std::move(sleeping)).kind(), Kind::unknown);
  }
  ASSERT_EQ(link.lost_backends().size(), 1u);
  EXPECT_EQ(link.lost_backends().front().pid, pid);
  run(link.wait_up(in(60s)));
  run(link.run_one(one));
  run(link.stop());
}

TEST_F(ConnectedTest, AResultThatHasArrivedIsReadBeforeAConnectionCountsAsStuck) {
  Task<Rows> answered = connection->run_one(one);
  database.wait_for("select state from pg_stat_activity where query = 'select 1' and pid = " +
                        std::to_string(connection->server().backend_pid),
                    "idle");
  connection->close_if_stuck();
  EXPECT_TRUE(connection->is_open());
  EXPECT_EQ(run(std::move(answered)).size(), 1u);
}

Task<void> in_order(Pool& pool, std::string name, std::string& order) {
  const Pool::Handle lease = co_await pool.acquire(in(60s));
  co_await lease->run_one(one);
  order += name;
}

Task<void> contend(Pool& pool, std::string& order) {
  runtime::TaskGroup group;
  for (const char* name : {"a", "b", "c"}) group.spawn(in_order(pool, name, order));
  co_await group.join();
}

TEST_F(LinkTest, APoolLendsToOneAtATimeInOrder) {
  Pool pool(loop, quick(), 1);
  std::string order;
  pool.start();
  run(contend(pool, order));
  EXPECT_EQ(order, "abc");
  run(pool.stop());
}

Task<void> take_turn(Pool& pool, Pool::Claim claim, std::string& order) {
  std::string name = claim.owner;
  const Pool::Handle lease = co_await pool.acquire(in(60s), std::move(claim));
  co_await lease->run_one(one);
  order += name;
}

Task<void> flood(Pool& pool, std::string& order) {
  runtime::TaskGroup group;
  for (int i = 0; i < 4; ++i) group.spawn(take_turn(pool, {"a"}, order));
  group.spawn(take_turn(pool, {"b"}, order));
  group.spawn(take_turn(pool, {"c"}, order));
  co_await group.join();
}

TEST_F(LinkTest, OwnersTakeTurnsWhoeverHasMoreWaiting) {
  Pool pool(loop, quick(), 1);
  std::string order;
  pool.start();
  run(flood(pool, order));
  EXPECT_EQ(order.size(), 6U);
  EXPECT_LT(order.find('b'), 3U) << order;
  EXPECT_LT(order.find('c'), 3U) << order;
  EXPECT_FALSE(pool.is_occupied_by("a"));
  run(pool.stop());
}

Task<bool> leaves_one_for_others(Pool& pool) {
  const Pool::Claim greedy{"greedy", 1}, other{"other", 1};
  const Pool::Handle first = co_await pool.acquire(in(60s), greedy);
  bool is_rejected = false;
  try {
    const Pool::Handle second = co_await pool.acquire(in(5ms), greedy);
  } catch (const Error&) {
    is_rejected = true;
  }
  const Pool::Handle others = co_await pool.acquire(in(60s), other);
  co_return is_rejected&& pool.is_occupied_by("greedy");
}

TEST_F(LinkTest, AnOwnerHoldsNoMoreLinksThanItsShare) {
  Pool pool(loop, quick(), 2);
  pool.start();
  EXPECT_TRUE(run(leaves_one_for_others(pool)));
  run(pool.stop());
}

Task<void> use_up_time(Pool& pool, Pool::Claim claim) {
  const Pool::Handle lease = co_await pool.acquire(in(60s), std::move(claim));
  Batch sleep({nullptr, "select pg_sleep(0.003)"}, Params());
  co_await lease->run(std::move(sleep));
}

Task<bool> is_lent(Pool& pool, Pool::Claim claim, SteadyTime deadline) {
  try {
    const Pool::Handle lease = co_await pool.acquire(deadline, std::move(claim));
    co_return true;
  } catch (const Error&) {
    co_return false;
  }
}

TEST_F(LinkTest, AnOwnerThatUsedUpItsShareOfTheTimeWaitsWhileOthersAreServed) {
  Pool pool(loop, quick(), 2);
  pool.start();
  const Pool::Claim greedy{.owner = "greedy", .time_share = 1e-9};
  run(use_up_time(pool, greedy));
  EXPECT_TRUE(pool.is_occupied_by("greedy"));
  EXPECT_FALSE(run(is_lent(pool, greedy, in(5ms))));
  EXPECT_TRUE(run(is_lent(pool, {.owner = "other", .time_share = 1e-9}, in(60s))));
  run(pool.stop());
}

TEST_F(LinkTest, AnOwnerIsServedAgainOnceItsShareHasMadeUpForWhatItUsed) {
  Pool pool(loop, quick(), 2);
  pool.start();
  const Pool::Claim claim{.owner = "a", .time_share = 1e-3};  // 3 ms cost 3 s, of which 2 s are credit
  run(use_up_time(pool, claim));
  EXPECT_FALSE(run(is_lent(pool, claim, in(5ms))));
  EXPECT_TRUE(run(is_lent(pool, claim, in(60s))));
  EXPECT_TRUE(run(is_lent(pool, claim, in(60s)))) << "only the time of a lease is paid for";
  run(pool.stop());
}

Task<Kind> second_of(Pool& pool) {
  const Pool::Handle first = co_await pool.acquire(in(60s));
  try {
    const Pool::Handle second = co_await pool.acquire(in(5ms));
  } catch (const Error& error) {
    co_return error.kind();
  }
  co_return Kind::other;
}

TEST_F(LinkTest, ABusyPoolIsUnavailableAtTheDeadline) {
  Pool pool(loop, quick(), 1);
  pool.start();
  EXPECT_EQ(run(second_of(pool)), Kind::unavailable);
  EXPECT_EQ(run(pool.run(Batch(one, Params()), in(60s))).size(), 1U);
  run(pool.stop());
  EXPECT_EQ(error_of(pool.acquire(in(60s))).kind(), Kind::unavailable);
}

}  // namespace
}  // namespace postrider::pg
