#include "postrider/outbox/stuck.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postrider::outbox {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

std::vector<SetAside> rows(int count, const std::string& tenant = "acme") {
  std::vector<SetAside> made;
  for (int i = 1; i <= count; ++i) made.push_back({i, tenant, "order.paid", "there is no such tenant"});
  return made;
}

TEST(StuckTally, TellsTheFirstAtOnceAndTheRestOfTheMinuteTogether) {
  StuckTally tally("billing");
  const base::SteadyTime start{1h};
  EXPECT_FALSE(tally.due(start));
  tally.add(rows(1));
  EXPECT_EQ(tally.due(start),
            R"({"outbox":"billing","rows":1,"first":[{"row":1,"tenant_id":"acme","type":"order.paid",)"
            R"("error":"there is no such tenant"}]})");
  tally.told(start);
  for (int i = 0; i < 1'000; ++i) tally.add(rows(3));
  EXPECT_FALSE(tally.due(start + 59s)) << "a storm is one event a minute";
  EXPECT_THAT(*tally.due(start + 60s), HasSubstr(R"("rows":3000)"));
  EXPECT_LT(tally.due(start + 60s)->size(), 2'000U);
  tally.told(start + 60s);
  EXPECT_FALSE(tally.due(start + 1h));
}

TEST(StuckTally, TellsNothingAboutTheReservedTenant) {
  StuckTally tally("billing");
  tally.add(rows(2, "postrider"));
  EXPECT_FALSE(tally.due(base::SteadyTime{1h}));
}

}  // namespace
}  // namespace postrider::outbox
