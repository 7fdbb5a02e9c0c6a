// What a node says it is sending: written when it changed, believed while the node lives and owns the bucket.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "postrider/delivery/report/in_flight_writer.hpp"
#include "support/database.hpp"
#include "support/run.hpp"

namespace postrider::delivery {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

base::Uuid numbered(uint8_t n) {
  base::Uuid id;
  id.bytes[15] = n;
  return id;
}

InFlight sent(uint8_t n, int bucket) {
  return {{numbered(n)}, bucket};
}

struct InFlightTest : testing::Test {
  InFlightTest()
      : link(loop, {.connect = pg::ConnectOptions::engine(db.url())}),
        writer(loop, link, {numbered(99)}, [this] { return told(); }) {
    link.start();
    run(link.wait_up(base::BootClock::now() + std::chrono::seconds(30)));
    db.sql("insert into node (id, slot, name, version, delivers) values ('" + numbered(99).text() +
           "', 1, 'a', '1', true)");
    db.sql("update bucket_lease set owner = '" + numbered(99).text() + "' where bucket < 10");
  }
  ~InFlightTest() override { run(link.stop()); }

  template <class T>
  void run(runtime::Task<T> task) {
    support::run(loop, std::move(task));
  }
  runtime::Task<std::vector<InFlight>> told() { co_return now; }
  std::string seen() {
    return db.sql(
        "select coalesce(string_agg(right(id::text, 2) || ':' || bucket, ' ' order by id), '') from "
        "in_flight");
  }
  std::string version() { return db.sql("select xmin from node_in_flight"); }

  support::Database db;
  runtime::Loop loop;
  pg::Link link;
  InFlightWriter writer;
  std::vector<InFlight> now;
};

TEST_F(InFlightTest, SaysWhatIsUnderWayAndTakesItBack) {
  now = {sent(7, 3), sent(5, 2)};
  run(writer.run_once());
  EXPECT_EQ(seen(), "05:2 07:3");
  now = {sent(7, 3)};
  run(writer.run_once());
  EXPECT_EQ(seen(), "07:3");
  run(writer.stop());
  EXPECT_EQ(db.sql("select count(*) from node_in_flight"), "0");
}

TEST_F(InFlightTest, WritesNothingWhileItStaysTheSame) {
  run(writer.run_once());
  EXPECT_EQ(db.sql("select count(*) from node_in_flight"), "0") << "nothing was under way";
  now = {sent(7, 3), sent(5, 2)};
  run(writer.run_once());
  const std::string first = version();
  now = {sent(5, 2), sent(7, 3)};
  run(writer.run_once());
  EXPECT_EQ(version(), first);
  now = {sent(5, 2)};
  run(writer.run_once());
  EXPECT_NE(version(), first);
}

TEST_F(InFlightTest, IsNotBelievedOnceTheNodeIsDeadOrTheBucketAnothers) {
  now = {sent(5, 2), sent(7, 3), sent(8, 20)};
  run(writer.run_once());
  EXPECT_EQ(seen(), "05:2 07:3") << "bucket 20 was never its own";
  db.sql("update bucket_lease set owner = null where bucket = 2");
  EXPECT_EQ(seen(), "07:3");
  db.sql("update node set alive = false");
  EXPECT_EQ(seen(), "");
}

TEST(ExchangesInFlight, AreSeenTheOldestFirstUntilTheirScopeEnds) {
  const base::SteadyTime start = base::BootClock::now();
  const auto after = [start](int ms) { return start + std::chrono::milliseconds(ms); };
  ExchangesInFlight exchanges;
  ExchangeInFlight first(sent(1, 1), after(0));
  exchanges.add(first);
  {
    ExchangeInFlight second(sent(2, 1), after(1));
    exchanges.add(second);
    ExchangeInFlight third(sent(3, 1), after(2));
    exchanges.add(third);
    EXPECT_THAT(exchanges.started_before(after(2), 10), ElementsAre(sent(1, 1), sent(2, 1)));
    EXPECT_THAT(exchanges.started_before(after(9), 2), ElementsAre(sent(1, 1), sent(2, 1)));
    EXPECT_THAT(exchanges.started_before(after(0), 10), IsEmpty());
  }
  EXPECT_THAT(exchanges.started_before(after(9), 10), ElementsAre(sent(1, 1)));
}

}  // namespace
}  // namespace postrider::delivery
