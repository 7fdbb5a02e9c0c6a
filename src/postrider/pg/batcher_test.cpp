#include "postrider/pg/batcher.hpp"

#include <gtest/gtest.h>

namespace postrider::pg {
namespace {

using namespace std::chrono_literals;

const base::SteadyTime start = base::SteadyTime(1'000s);

TEST(Patience, CountsFromTheArrival) {
  const Patience patience(10s);
  EXPECT_EQ(patience.deadline(start, start), start + 10s);
  EXPECT_EQ(patience.deadline(start, start + 5s), start + 10s);
}

TEST(Patience, WhoIsLateBehindOthersThatWereWrittenIsStillTried) {
  const Patience patience(10s);
  EXPECT_EQ(patience.deadline(start, start + 15s), start + 20s);
  EXPECT_EQ(patience.deadline(start, start + 9'500ms), start + 14'500ms);
}

TEST(Patience, WhoIsLateBehindOneThatWasGivenUpIsNotTried) {
  Patience patience(10s);
  patience.gave_up();
  EXPECT_EQ(patience.deadline(start, start + 10s), std::nullopt);
  EXPECT_EQ(patience.deadline(start, start + 9'900ms), start + 10s);
  patience.succeeded();
  EXPECT_EQ(patience.deadline(start, start + 10s), start + 15s);
}

}  // namespace
}  // namespace postrider::pg
