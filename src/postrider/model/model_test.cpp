#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "postrider/model/event_type.hpp"
#include "postrider/model/id_source.hpp"
#include "postrider/model/ids.hpp"

namespace postrider::model {
namespace {

using testing::ElementsAre;

TEST(EventType, TakesWordsJoinedByDots) {
  for (const char* good : {"a", "invoice.paid", "A-1_b.c.d"}) EXPECT_TRUE(is_event_type(good)) << good;
  for (const char* bad : {"", ".", "a.", ".a", "a..b", "a b", "ä", "a.*"})
    EXPECT_FALSE(is_event_type(bad)) << bad;
  EXPECT_TRUE(is_event_type(std::string(128, 'x')));
  EXPECT_FALSE(is_event_type(std::string(129, 'x')));
}

TEST(Pattern, IsATypeAPrefixOrEverything) {
  for (const char* good : {"*", "a.*", "a.b.*", "a.b"}) EXPECT_TRUE(is_pattern(good)) << good;
  for (const char* bad : {"", ".*", "**", "a*", "*.a", "a.*.b"}) EXPECT_FALSE(is_pattern(bad)) << bad;
}

TEST(Pattern, APrefixMatchesAnyDepthBelowButNotItself) {
  EXPECT_THAT(patterns_matching("a.b.c"), ElementsAre("a.b.c", "a.b.*", "a.*", "*"));
  EXPECT_THAT(patterns_matching("a"), ElementsAre("a", "*"));
}

TEST(IdSource, MakesIdsThatGrowAndWhoseFirstTenBytesAreUnique) {
  IdSource source;
  source.synchronise(77, base::Timestamp(std::chrono::hours(24 * 365 * 50)), base::BootClock::now());
  std::set<std::string> heads;
  base::Uuid last;
  for (int i = 0; i < 50'000; ++i) {
    const auto id = source.next();
    EXPECT_LT(last, id);
    last = id;
    heads.insert(delivery_head_of(EventId{id}));
  }
  EXPECT_EQ(heads.size(), 50'000u);
}

TEST(IdSource, KeepsGrowingWhenTheDatabaseClockIsSetBack) {
  IdSource source;
  source.synchronise(1, base::Timestamp(std::chrono::hours(500'000)), base::BootClock::now());
  const auto before = source.next();
  source.synchronise(1, base::Timestamp(std::chrono::hours(400'000)), base::BootClock::now());
  EXPECT_LT(before, source.next());
}

TEST(DeliveryRange, CoversEveryDeliveryOfTheEvents) {
  const auto event = *EventId::from_public_id("evt_0192b6c000007abc8def0123456789ab");
  const auto range = delivery_range(event, event);
  const auto delivery =
      *DeliveryId::from_public_id("dlv_" + delivery_head_of(event) + delivery_tail_of(EndpointId{}));
  EXPECT_LE(range.first, delivery);
  EXPECT_LE(delivery, range.last);
}

TEST(Bucket, SpreadsEndpointsEvenly) {
  IdSource source;
  source.synchronise(3, base::Timestamp(std::chrono::hours(500'000)), base::BootClock::now());
  std::vector<int> count(64);
  for (int i = 0; i < 64'000; ++i) ++count[static_cast<size_t>(bucket_of(EndpointId{source.next()}, 64))];
  for (const int n : count) EXPECT_NEAR(n, 1000, 250);
}

}  // namespace
}  // namespace postrider::model
