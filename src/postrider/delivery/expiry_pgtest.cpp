// The deadline that people see is the one at which deliveries expire.
#include <random>

#include "postrider/delivery/attempt/expiry.hpp"
#include "postrider/delivery/delivery_testing.hpp"

namespace postrider::delivery {
namespace {

using registry::PauseSpans;

struct GiveUpAt : testing::Test {
  static base::Timestamp at(int64_t microseconds) { return start + std::chrono::microseconds(microseconds); }
  static std::string ranges(const PauseSpans& spans) {
    std::string text = "{";
    for (const registry::PauseSpan& span : spans) {
      if (text.size() > 1) text += ",";
      text += "[\"" + base::to_rfc3339(span.since) + "\"," +
              (span.until ? "\"" + base::to_rfc3339(*span.until) + "\"" : "") + ")";
    }
    return text + "}";
  }
  // Empty: the clock stands still.
  std::string in_sql(base::Timestamp since, std::chrono::seconds give_up, const PauseSpans& spans) {
    return db.sql("select give_up_at('" + base::to_rfc3339(since) + "', " + std::to_string(give_up.count()) +
                  ", '" + ranges(spans) + "')");
  }
  base::Timestamp in_sql_at(base::Timestamp since, std::chrono::seconds give_up, const PauseSpans& spans) {
    const std::string micros =
        db.sql("select (extract(epoch from give_up_at('" + base::to_rfc3339(since) + "', " +
               std::to_string(give_up.count()) + ", '" + ranges(spans) + "')) * 1000000)::bigint");
    return base::Timestamp(std::chrono::microseconds(std::stoll(micros)));
  }

  inline static const base::Timestamp start = *base::parse_rfc3339("2026-03-28T22:00:00Z");
  support::Database db;
};

TEST_F(GiveUpAt, IsTheMomentAtWhichDeliveriesExpire) {
  db.sql("set timezone = 'Europe/Berlin'");  // where a day of that week has 23 hours
  ASSERT_EQ(db.sql("show timezone"), "Europe/Berlin");
  std::mt19937_64 random(4711);
  const auto number = [&random](int64_t most) { return static_cast<int64_t>(random() % (most + 1)); };
  int paused = 0;
  for (int round = 0; round < 150; ++round) {
    PauseSpans spans;
    int64_t time = -number(200'000'000'000);
    for (int64_t left = number(5); left > 0; --left) {
      const int64_t since = time + 1 + number(90'000'000'000), until = since + 1 + number(90'000'000'000);
      spans.push_back({at(since), at(until)});
      time = until;
    }
    const std::chrono::seconds give_up(1 + number(300'000));
    const auto expires = in_sql_at(start, give_up, spans);
    if (expires > start + give_up) ++paused;
    const ExpiryClock clock{.give_up = give_up, .pauses = spans, .unserved = {}};
    EXPECT_TRUE(Expiry(clock, expires).is_expired(start)) << round << " " << ranges(spans);
    EXPECT_FALSE(Expiry(clock, expires - 1us).is_expired(start)) << round << " " << ranges(spans);
    EXPECT_EQ(registry::paused_between(spans, start, expires) + give_up, expires - start) << round;
  }
  EXPECT_GT(paused, 30);
}

TEST_F(GiveUpAt, IsUnknownWhileTheClockStandsStill) {
  const auto minute = [](int64_t number) { return at(number * 60'000'000); };
  const PauseSpans open = {{minute(5), minute(10)}, {minute(59), {}}};
  EXPECT_EQ(in_sql(start, 1h, open), "") << "five minutes are left";
  EXPECT_EQ(in_sql(minute(-90), 1h, open), in_sql(minute(-90), 1h, {})) << "it had expired before";
  EXPECT_EQ(in_sql(minute(70), 1h, open), "") << "created during the pause";
  const PauseSpans at_the_end = {{minute(60), {}}};
  EXPECT_NE(in_sql(start, 1h, at_the_end), "") << "it expires at the moment at which the pause begins";
}

}  // namespace
}  // namespace postrider::delivery
