#include "postrider/api/wire/shares.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace postrider::api {
namespace {

using Room = Shares::Room;

TEST(Shares, OneHolderLeavesTheOthersRoom) {
  Shares shares({.total = 5, .each = 2});
  std::vector<Shares::Place> places;
  places.push_back(shares.take("a"));
  EXPECT_EQ(shares.room_for("a"), Room::free);
  places.push_back(shares.take("a"));
  EXPECT_EQ(shares.room_for("a"), Room::share_used_up);
  EXPECT_EQ(shares.room_for("b"), Room::free);
}

TEST(Shares, AFullWholeIsNotTheHoldersFault) {
  Shares shares({.total = 2, .each = 2});
  std::vector<Shares::Place> places;
  places.push_back(shares.take("a"));
  places.push_back(shares.take("b"));
  EXPECT_EQ(shares.room_for("a"), Room::full);
  EXPECT_EQ(shares.room_for("c"), Room::full);
}

TEST(Shares, APlaceIsGivenBackWithItsObject) {
  Shares shares({.total = 1, .each = 1});
  {
    const Shares::Place place = shares.take("a");
    EXPECT_EQ(shares.taken(), 1);
  }
  EXPECT_EQ(shares.taken(), 0);
  EXPECT_EQ(shares.room_for("a"), Room::free);
}

TEST(Shares, TheKeysOfATenantShareAndUnboundKeysHaveTheirOwn) {
  registry::Principal first, second;
  first.key.uuid.bytes[0] = 1;
  second.key.uuid.bytes[0] = 2;
  EXPECT_NE(holder_of(first), holder_of(second));
  first.tenant = second.tenant = "acme";
  EXPECT_EQ(holder_of(first), holder_of(second));
}

TEST(Shares, AUsedUpShareIsTooManyRequestsAndAFullWholeIsUnavailable) {
  const Shares shares({.total = 20, .each = 5});
  registry::Principal bound;
  bound.tenant = "acme";
  const auto own = no_room(shares, Room::share_used_up, bound, "exports");
  EXPECT_EQ(own.status, 429);
  EXPECT_EQ(own.type, "too-many-exports");
  EXPECT_EQ(own.detail,
            "This tenant has 5 exports in progress, which is the limit. Wait until one has ended.");
  EXPECT_TRUE(own.retry_after);
  EXPECT_EQ(no_room(shares, Room::full, bound, "exports").status, 503);
}

}  // namespace
}  // namespace postrider::api
