#include "postrider/delivery/report/rollup_counts.hpp"

#include <gtest/gtest.h>

namespace postrider::delivery {
namespace {

model::EventContent event(std::string public_id, std::string body) {
  model::EventContent content;
  content.public_id = std::move(public_id);
  content.body = std::move(body);
  return content;
}

struct RollupCounterTest : testing::Test {
  RollupCounterTest() : lane(std::make_shared<Lane>(model::EndpointId{}, Lane::Home{1, 1}, totals)) {
    auto made = std::make_shared<LaneConfig>();
    made->endpoint.tenant_id = "acme";
    lane->configure(std::move(made), {});
  }

  void settle(const char* type, Verdict::Kind kind, int attempts_before, base::Timestamp at = {}) {
    Settlement settlement;
    settlement.lane = lane;
    settlement.row.attempts = attempts_before;
    settlement.row.event = std::make_shared<model::EventContent>(
        event("e", R"({"id":"e","type":")" + std::string(type) + R"(","data":1})"));
    settlement.verdict.kind = kind;
    settlement.facts.started_at = at;
    settlement.facts.total_us = 100;
    settlement.facts.is_resent = is_resent;
    counter.add(settlement);
  }

  BufferTotals totals;
  std::shared_ptr<Lane> lane;
  bool is_resent = false;
  RollupCounter counter;
};

TEST(TypeIn, IsReadFromTheBody) {
  EXPECT_EQ(type_in(event("evt_1", R"({"id":"evt_1","type":"invoice.paid","data":{}})")), "invoice.paid");
  EXPECT_EQ(type_in(event("evt_1", "")), "");
  EXPECT_EQ(type_in(event("evt_1", R"({"id":"evt_1","type":")")), "");
}

TEST_F(RollupCounterTest, AddsUpByTypeAndHour) {
  settle("a", Verdict::Kind::delivered, 0);
  settle("a", Verdict::Kind::delivered, 2);
  settle("a", Verdict::Kind::retrying, 0);
  settle("b", Verdict::Kind::dead_letter, 1);
  settle("a", Verdict::Kind::delivered, 0, base::Timestamp(std::chrono::hours(5)));
  const auto rows = counter.take();
  ASSERT_EQ(rows.size(), 3u);
  const RollupCounts& first = rows[0].counts;
  EXPECT_EQ(rows[0].tenant, "acme");
  EXPECT_EQ(first.type, "a");
  EXPECT_EQ(first.delivered, 2);
  EXPECT_EQ(first.delivered_attempts, 4);
  EXPECT_EQ(first.first_attempt_successes, 1);
  EXPECT_EQ(first.retrying, 1);
  EXPECT_EQ(first.latency_us, 300);
  EXPECT_EQ(rows[1].counts.dead_letter_attempts, 2);
  EXPECT_EQ(rows[2].counts.hour, 5);
}

TEST_F(RollupCounterTest, ARequestThatWasSentAgainCountsAsTwo) {
  is_resent = true;
  settle("a", Verdict::Kind::delivered, 0);
  const auto rows = counter.take();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].counts.exchanges, 2);
  EXPECT_EQ(rows[0].counts.first_attempt_successes, 1);
}

TEST_F(RollupCounterTest, WhatWasTakenIsNotCountedAgain) {
  settle("a", Verdict::Kind::delivered, 0);
  EXPECT_EQ(counter.take().size(), 1u);
  EXPECT_TRUE(counter.take().empty());
  settle("a", Verdict::Kind::delivered, 0);
  const auto rows = counter.take();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].counts.delivered, 1);
}

}  // namespace
}  // namespace postrider::delivery
