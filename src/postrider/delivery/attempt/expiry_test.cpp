#include "postrider/delivery/attempt/expiry.hpp"

#include <gtest/gtest.h>

namespace postrider::delivery {
namespace {

using registry::PauseSpans;
using std::chrono::minutes;

const base::Timestamp start = *base::parse_rfc3339("2026-04-08T10:00:00Z");
base::Timestamp at(int minute) {
  return start + minutes(minute);
}
registry::PauseSpan span(int since, int until) {
  return {at(since), at(until)};
}

struct Case {
  std::string name;
  PauseSpans pauses;
  PauseSpans unserved;
  int created, expires;  // minutes; with an hour to live
};

// A delivery has not expired a moment before that minute, and has from then on.
TEST(Expiry, StopsTheClockForPausesAndNothingElse) {
  const std::vector<Case> cases = {
      {"without pauses", {}, {}, 0, 60},
      {"a pause", {span(10, 20)}, {}, 0, 70},
      {"a pause before its creation", {span(-30, -10)}, {}, 0, 60},
      {"created during a pause", {span(-10, 20)}, {}, 0, 80},
      {"paused twice, the first longer ago than it may live", {span(5, 205), span(220, 230)}, {}, 0, 270},
      {"three pauses", {span(1, 2), span(3, 5), span(30, 100)}, {}, 0, 133},
      {"a pause after the deadline", {span(90, 100)}, {}, 0, 60},
      {"a pause that ends at the deadline", {span(50, 60)}, {}, 0, 70},
      {"unserved before the deadline", {}, {span(10, 30)}, 0, 60},
      {"unserved after the deadline", {}, {span(70, 80)}, 0, 60},
      {"unserved at the deadline: one attempt first, for another hour", {}, {span(50, 90)}, 0, 150},
      {"the same with a pause afterwards", {span(100, 110)}, {span(50, 90)}, 0, 160},
      {"the same with a pause before", {span(10, 20)}, {span(65, 90)}, 0, 150},
      {"unserved at its deadline and again later", {}, {span(50, 90), span(100, 120)}, 0, 150},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    const ExpiryClock clock{
        .give_up = std::chrono::hours(1), .pauses = each.pauses, .unserved = each.unserved};
    const auto is_expired = [&](base::Timestamp now) {
      // Only what has happened by then is known.
      ExpiryClock known = clock;
      std::erase_if(known.pauses, [&](const auto& each_span) { return each_span.since > now; });
      for (auto& pause : known.pauses)
        if (*pause.until > now) pause.until.reset();
      std::erase_if(known.unserved, [&](const auto& each_span) { return *each_span.until > now; });
      return Expiry(known, now).is_expired(at(each.created));
    };
    EXPECT_FALSE(is_expired(at(each.expires) - std::chrono::microseconds(1)));
    EXPECT_TRUE(is_expired(at(each.expires)));
    EXPECT_TRUE(is_expired(at(each.expires + 1)));
  }
}

TEST(Expiry, StandsStillWhileAPauseIsGoingOn) {
  const ExpiryClock clock{.give_up = minutes(60), .pauses = {{at(59), {}}}, .unserved = {}};
  for (const int minute : {59, 60, 61, 1'000, 100'000})
    EXPECT_FALSE(Expiry(clock, at(minute)).is_expired(at(0))) << minute;
  EXPECT_TRUE(Expiry(clock, at(1'000)).is_expired(at(-1)));
}

TEST(RunningSince, AgreesWithTheTimeThatWasPaused) {
  const PauseSpans spans = {span(-100, -90), span(-60, -35), span(-20, -10), span(-5, -1)};
  for (int running = 1; running < 200; ++running) {
    const auto since = registry::running_since(spans, minutes(running), at(0));
    const auto ran = [&](base::Timestamp from) {
      return at(0) - from - registry::paused_between(spans, from, at(0));
    };
    EXPECT_EQ(ran(since), minutes(running)) << running;
    EXPECT_LT(ran(since + std::chrono::microseconds(1)), minutes(running)) << "it is the latest such time";
  }
}

TEST(Merged, JoinsWhatOverlapsOrTouchesInAnyOrder) {
  const PauseSpans spans = {span(30, 40), span(0, 10), span(5, 20), span(20, 25), span(32, 35)};
  EXPECT_EQ(registry::merged(spans), (PauseSpans{span(0, 25), span(30, 40)}));
  EXPECT_EQ(registry::merged({{at(0), {}}, span(5, 6)}), (PauseSpans{{at(0), {}}}));
}

}  // namespace
}  // namespace postrider::delivery
