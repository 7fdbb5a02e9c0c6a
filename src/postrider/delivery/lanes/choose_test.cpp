#include "postrider/delivery/lanes/choose.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace postrider::delivery {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::Le;

struct ChooseTest : testing::Test {
  std::shared_ptr<Lane> make_lane(Chooser& chooser, const std::string& tenant, int max_in_flight = 1000) {
    model::EndpointId id;
    id.uuid.bytes[15] = static_cast<uint8_t>(++lanes_made);
    auto lane = std::make_shared<Lane>(id, Lane::Home{0, 1}, totals);
    auto config = std::make_shared<LaneConfig>();
    config->endpoint.tenant_id = tenant;
    config->endpoint.max_in_flight = max_in_flight;
    config->mode = LaneConfig::Mode::send;
    lane->configure(std::move(config), now());
    chooser.join(*lane, tenant);
    return lane;
  }
  void fill(Chooser& chooser, const std::shared_ptr<Lane>& lane, int rows, Turn turn = Turn::first,
            size_t bytes = 1) {
    for (int i = 0; i < rows; ++i) {
      QueueRow row;
      auto event = std::make_shared<model::EventContent>();
      event->body = std::string(bytes, 'x');
      row.event = std::move(event);
      const int n = ++rows_made;
      row.key.id.uuid.bytes[14] = static_cast<uint8_t>(n / 256);
      row.key.id.uuid.bytes[15] = static_cast<uint8_t>(n % 256);
      lane->buffer(turn).offer(std::move(row), true);
    }
    chooser.add(lane, turn);
  }
  Now now() const { return {steady, base::Timestamp(1s)}; }

  // Chooses until nothing can be chosen; how many of each tenant.
  std::map<std::string, int> choose_all(Chooser& chooser, int at_most = 10'000) {
    std::map<std::string, int> sent;
    for (int i = 0; i < at_most; ++i) {
      auto choice = chooser.next(now(), not_ready);
      if (!choice) break;
      ++sent[choice->lane->tenant()->id];
      under_way.push_back(std::move(*choice));
    }
    return sent;
  }
  void finish_all(Chooser& chooser) {
    for (auto& choice : under_way) finish(chooser, choice);
    under_way.clear();
  }
  void finish(Chooser& chooser, Chooser::Choice& choice) {
    choice.lane->finished_exchange();
    choice.lane->release(choice.row.id());
    chooser.finished({*choice.lane->tenant(), choice.turn, choice.row.body_bytes()});
    if (!choice.lane->buffer(choice.turn).empty()) chooser.add(choice.lane, choice.turn);
  }

  BufferTotals totals;
  base::SteadyTime steady{100s};
  int lanes_made = 0, rows_made = 0;
  std::vector<std::shared_ptr<Lane>> not_ready;
  std::vector<Chooser::Choice> under_way;
};

TEST_F(ChooseTest, TenantsTakeTurnsHoweverMuchEachHas) {
  Chooser chooser({});
  fill(chooser, make_lane(chooser, "large"), 500);
  const auto small = make_lane(chooser, "small");
  fill(chooser, small, 5);
  EXPECT_THAT(choose_all(chooser, 10), ElementsAre(std::pair("large", 5), std::pair("small", 5)));
}

TEST_F(ChooseTest, LanesOfATenantTakeTurns) {
  Chooser chooser({});
  const auto first = make_lane(chooser, "acme"), second = make_lane(chooser, "acme");
  fill(chooser, first, 50);
  fill(chooser, second, 50);
  choose_all(chooser, 20);
  EXPECT_EQ(first->in_flight(), 10);
  EXPECT_EQ(second->in_flight(), 10);
}

TEST_F(ChooseTest, ManyEndpointsGiveATenantNoMoreThanItsShare) {
  Chooser chooser({});
  for (int i = 0; i < 20; ++i) fill(chooser, make_lane(chooser, "many"), 10);
  fill(chooser, make_lane(chooser, "one"), 10);
  EXPECT_EQ(choose_all(chooser, 20)["one"], 10);
}

TEST_F(ChooseTest, AHangingTenantNeverFillsTheNode) {
  Chooser chooser({.in_flight_max = 64});
  fill(chooser, make_lane(chooser, "hanging"), 200);
  EXPECT_EQ(choose_all(chooser)["hanging"], 32) << "not more than there are free slots";
  fill(chooser, make_lane(chooser, "other"), 200);
  EXPECT_EQ(choose_all(chooser)["other"], 16);
  fill(chooser, make_lane(chooser, "third"), 200);
  EXPECT_EQ(choose_all(chooser)["third"], 8) << "there is always something left";
}

TEST_F(ChooseTest, ASlotThatIsFreedGoesToWhoeverWaited) {
  Chooser chooser({.in_flight_max = 8});
  fill(chooser, make_lane(chooser, "acme"), 100);
  int sent = choose_all(chooser)["acme"];
  EXPECT_EQ(sent, 4);
  for (int round = 0; round < 50; ++round) {
    finish_all(chooser);
    EXPECT_EQ(chooser.in_flight(), 0);
    EXPECT_EQ(chooser.bytes_in_flight(), 0u);
    sent += choose_all(chooser)["acme"];
  }
  EXPECT_EQ(sent, 100);
}

TEST_F(ChooseTest, TheTenantsOwnLimitHolds) {
  Chooser chooser({});
  const auto lane = make_lane(chooser, "acme");
  chooser.tenant("acme").max_in_flight = 3;
  fill(chooser, lane, 10);
  EXPECT_EQ(choose_all(chooser)["acme"], 3);
  finish_all(chooser);
  EXPECT_EQ(choose_all(chooser)["acme"], 3);
}

TEST_F(ChooseTest, TheTenantsRateHoldsAndTellsWhenItGoesOn) {
  Chooser chooser({});
  const auto lane = make_lane(chooser, "acme");
  chooser.tenant("acme").rate.emplace(10, steady);
  fill(chooser, lane, 30);
  EXPECT_EQ(choose_all(chooser)["acme"], 10) << "a burst of one second";
  ASSERT_TRUE(chooser.next_tenant_at());
  EXPECT_EQ(*chooser.next_tenant_at(), steady + 100ms);
  EXPECT_EQ(choose_all(chooser)["acme"], 0);
  steady += 100ms;
  EXPECT_EQ(choose_all(chooser)["acme"], 1);
  steady += 1s;
  EXPECT_EQ(choose_all(chooser)["acme"], 10);
}

TEST_F(ChooseTest, AHigherRateActsAtOnceOnATenantThatIsSetAside) {
  Chooser chooser({});
  const auto lane = make_lane(chooser, "acme");
  chooser.set_limits(*lane->tenant(), {.max_in_flight = std::nullopt, .rate_per_second = 0.01}, steady);
  fill(chooser, lane, 30);
  EXPECT_EQ(choose_all(chooser)["acme"], 1);
  EXPECT_EQ(*chooser.next_tenant_at(), steady + 100s);
  chooser.set_limits(*lane->tenant(), {.max_in_flight = std::nullopt, .rate_per_second = 100}, steady);
  steady += 100ms;
  EXPECT_EQ(choose_all(chooser)["acme"], 10);
}

TEST_F(ChooseTest, ALargerShareActsAtOnceOnATenantThatIsSetAside) {
  Chooser chooser({});
  const auto lane = make_lane(chooser, "acme");
  chooser.set_limits(*lane->tenant(), {.max_in_flight = 4, .rate_per_second = std::nullopt}, steady);
  chooser.set_share(0.25, steady);
  fill(chooser, lane, 30);
  EXPECT_EQ(choose_all(chooser)["acme"], 1);
  chooser.set_share(1, steady);
  EXPECT_EQ(choose_all(chooser)["acme"], 3);
}

TEST_F(ChooseTest, BytesUnderWayAreLimitedAndShared) {
  Chooser chooser({.bytes_in_flight_max = 1000});
  fill(chooser, make_lane(chooser, "fat"), 50, Turn::first, 100);
  choose_all(chooser);
  EXPECT_THAT(chooser.bytes_in_flight(), Le(600u));
  fill(chooser, make_lane(chooser, "thin"), 5, Turn::first, 1);
  EXPECT_EQ(choose_all(chooser)["thin"], 5);
}

TEST_F(ChooseTest, FirstAttemptsGoBeforeRetriesWhichHaveAShare) {
  Chooser chooser({.retry_every = 5});
  const auto lane = make_lane(chooser, "acme");
  fill(chooser, lane, 100, Turn::retry);
  fill(chooser, lane, 100, Turn::first);
  choose_all(chooser, 50);
  int retries = 0;
  for (const auto& choice : under_way) retries += choice.turn == Turn::retry;
  EXPECT_EQ(retries, 10);
}

TEST_F(ChooseTest, RetriesUseWhatIsIdleUpToTheirLimit) {
  Chooser chooser({.retry_in_flight_max = 8});
  fill(chooser, make_lane(chooser, "acme"), 100, Turn::retry);
  EXPECT_EQ(choose_all(chooser)["acme"], 4) << "never more than are left for others";
  fill(chooser, make_lane(chooser, "acme"), 3, Turn::first);
  EXPECT_EQ(choose_all(chooser)["acme"], 3);
}

TEST_F(ChooseTest, HangingRetriesOfOneTenantLeaveRoomForThoseOfOthers) {
  Chooser chooser({.in_flight_max = 64, .retry_in_flight_max = 32});
  fill(chooser, make_lane(chooser, "hanging"), 100, Turn::retry);
  EXPECT_EQ(choose_all(chooser)["hanging"], 16);
  fill(chooser, make_lane(chooser, "other"), 100, Turn::retry);
  EXPECT_EQ(choose_all(chooser)["other"], 8);
  finish_all(chooser);
  EXPECT_GT(choose_all(chooser)["hanging"], 0) << "it goes on when something has ended";
}

TEST_F(ChooseTest, ALaneThatIsNotReadyIsReported) {
  Chooser chooser({});
  const auto lane = make_lane(chooser, "acme", 2);
  fill(chooser, lane, 5);
  EXPECT_EQ(choose_all(chooser)["acme"], 2);
  EXPECT_THAT(not_ready, ElementsAre(lane));
}

TEST_F(ChooseTest, AnUnusedTenantIsForgottenOnceNothingOfItIsUnderWay) {
  Chooser chooser({});
  auto lane = make_lane(chooser, "acme");
  fill(chooser, lane, 1);
  choose_all(chooser);
  lane->lose();
  chooser.leave(*lane);
  chooser.forget_unused_tenants();
  EXPECT_EQ(chooser.tenants(), 1u);
  finish_all(chooser);
  choose_all(chooser);
  chooser.forget_unused_tenants();
  EXPECT_EQ(chooser.tenants(), 0u);
}

TEST_F(ChooseTest, BrakesHoldEverythingOrOnlyRetries) {
  Chooser chooser({});
  const auto lane = make_lane(chooser, "a");
  fill(chooser, lane, 5);
  fill(chooser, lane, 5, Turn::retry);
  chooser.set_brakes({.is_paused = true}, steady);
  EXPECT_TRUE(choose_all(chooser).empty());
  chooser.set_brakes({.retry_rate_per_second = 1}, steady);
  EXPECT_EQ(choose_all(chooser)["a"], 6) << "five first attempts and one retry";
  chooser.set_brakes({}, steady);
  EXPECT_EQ(choose_all(chooser)["a"], 4);
  finish_all(chooser);
}

TEST_F(ChooseTest, DrainingSlowlyGoesOnWhenTheNextTokenIsThere) {
  Chooser chooser({});
  const auto lane = make_lane(chooser, "a");
  fill(chooser, lane, 10);
  chooser.set_brakes({.drain_rate_per_second = 2}, steady);
  EXPECT_EQ(choose_all(chooser)["a"], 2);
  ASSERT_TRUE(chooser.next_tenant_at());
  steady = *chooser.next_tenant_at();
  EXPECT_EQ(choose_all(chooser)["a"], 1);
  finish_all(chooser);
}

}  // namespace
}  // namespace postrider::delivery
