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

TEST(StuckCounts, TellsTheFirstAtOnceAndTheRestOfTheMinuteTogether) {
  StuckCounts counts("billing");
  const base::SteadyTime start{1h};
  EXPECT_FALSE(counts.due(start));
  counts.add(rows(1));
  EXPECT_EQ(counts.due(start),
            R"({"outbox":"billing","rows":1,"first":[{"row":1,"tenant_id":"acme","type":"order.paid",)"
            R"("error":"there is no such tenant"}]})");
  counts.told(start);
  for (int i = 0; i < 1'000; ++i) counts.add(rows(3));
  EXPECT_FALSE(counts.due(start + 59s)) << "a storm is one event a minute";
  EXPECT_THAT(*counts.due(start + 60s), HasSubstr(R"("rows":3000)"));
  EXPECT_LT(counts.due(start + 60s)->size(), 2'000U);
  counts.told(start + 60s);
  EXPECT_FALSE(counts.due(start + 1h));
}

TEST(StuckCounts, TellsNothingAboutTheReservedTenant) {
  StuckCounts counts("billing");
  counts.add(rows(2, "postrider"));
  EXPECT_FALSE(counts.due(base::SteadyTime{1h}));
}

}  // namespace
}  // namespace postrider::outbox
