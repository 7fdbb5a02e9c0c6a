#include "postrider/cli/human.hpp"

#include <gtest/gtest.h>

namespace postrider::cli {
namespace {

using namespace std::chrono_literals;

const base::Timestamp kNow = *base::parse_rfc3339("2026-04-08T10:15:30Z");

std::string time(const char* text) {
  const auto parsed = parse_time(text, kNow);
  return parsed ? base::to_rfc3339(*parsed) : "invalid";
}

TEST(Times, AreAgesDatesOrTimestamps) {
  EXPECT_EQ(time("1h"), "2026-04-08T09:15:30Z");
  EXPECT_EQ(time("2d"), "2026-04-06T10:15:30Z");
  EXPECT_EQ(time("1h30m"), "2026-04-08T08:45:30Z");
  EXPECT_EQ(time("2026-04-01"), "2026-04-01T00:00:00Z");
  EXPECT_EQ(time("today"), "2026-04-08T00:00:00Z");
  EXPECT_EQ(time("yesterday"), "2026-04-07T00:00:00Z");
  EXPECT_EQ(time("2026-04-08T12:00:00+02:00"), "2026-04-08T10:00:00Z");
  for (const char* wrong : {"", "h", "1x", "17", "-1h", "2026-13-01", "tomorrow"})
    EXPECT_EQ(time(wrong), "invalid") << wrong;
}

TEST(Durations, HaveUnits) {
  EXPECT_EQ(parse_duration("250ms"), 250ms);
  EXPECT_EQ(parse_duration("90"), 90s);
  EXPECT_EQ(parse_duration("1d"), 24h);
  EXPECT_EQ(parse_duration("1h30m"), 90min);
  for (const char* wrong : {"", "1", "1y", "m", "1h30", "99999999999d"})
    EXPECT_EQ(parse_duration(wrong).has_value(), std::string(wrong) == "1") << wrong;
}

TEST(Durations, AreShownWithTheUnitThatFits) {
  EXPECT_EQ(duration_text(450us), "450 µs");
  EXPECT_EQ(duration_text(12'345us), "12 ms");
  EXPECT_EQ(duration_text(10'002'797us), "10.0 s");
  EXPECT_EQ(duration_text(150s), "2m 30s");
  EXPECT_EQ(duration_text(std::chrono::hours(72)), "3d");
}

TEST(Ids, AreShortenedSoThatTheyCanBeFoundAgain) {
  const std::string delivery = "dlv_01a1ed9da9d270008000be9cec879229";
  EXPECT_EQ(short_id(delivery), "dlv_01a1ed9da9d2-9229");
  EXPECT_EQ(short_id("evt_01a1ed9da9d270008000976a21edfcf8"), "evt_01a1ed9da9d2");
  EXPECT_EQ(short_id("evt_01a1ed9da9d270018000976a21edfcf8"), "evt_01a1ed9da9d27001");
  EXPECT_EQ(short_id("inv-17-paid"), "inv-17-paid");
  const auto pattern = parse_id_pattern(short_id(delivery));
  ASSERT_TRUE(pattern);
  EXPECT_TRUE(pattern->matches(delivery));
  EXPECT_FALSE(pattern->matches("dlv_01a1ed9da9d270008000815774ed5d00"));
  EXPECT_EQ(base::to_rfc3339(*pattern->made_at()), "2026-11-18T07:44:55.250000Z");
  EXPECT_TRUE(parse_id_pattern("ep_01a1ed…")->matches("ep_01a1ed9da71a700080000b3c401553e5"));
  EXPECT_FALSE(parse_id_pattern(delivery));
  EXPECT_FALSE(parse_id_pattern("hooks"));
  EXPECT_FALSE(parse_id_pattern("ep_hooks"));
}

}  // namespace
}  // namespace postrider::cli
