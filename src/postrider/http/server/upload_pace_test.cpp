#include "postrider/http/server/upload_pace.hpp"

#include <gtest/gtest.h>

namespace postrider::http {
namespace {

using namespace std::chrono_literals;

constexpr UploadPace::Rule kRule{.window = 10'000ms, .bytes_per_second_min = 1'000};
const base::SteadyTime kStart = base::SteadyTime(1h);

TEST(UploadPace, GivesTheFirstBytesOneWindow) {
  UploadPace pace(kRule);
  pace.start(kStart);
  EXPECT_EQ(pace.deadline(), kStart + 10s);
}

TEST(UploadPace, FastBytesBuyNoPauseLongerThanTheWindow) {
  UploadPace pace(kRule);
  pace.start(kStart);
  pace.received(16 << 20, kStart + 1s);
  EXPECT_EQ(pace.deadline(), kStart + 11s);
}

TEST(UploadPace, ASteadyClientAtTheLowestRateMayTakeItsTime) {
  UploadPace pace(kRule);
  pace.start(kStart);
  for (auto now = kStart + 1s; now < kStart + 1h; now += 1s) {
    ASSERT_GT(pace.deadline(), now);
    pace.received(1'000, now);
  }
}

TEST(UploadPace, ATrickleBelowTheLowestRateEnds) {
  UploadPace pace(kRule);
  pace.start(kStart);
  auto now = kStart;
  while (pace.deadline() > now && now < kStart + 1h) {
    now += 1s;
    pace.received(500, now);
  }
  EXPECT_EQ(now, kStart + 20s);
}

}  // namespace
}  // namespace postrider::http
