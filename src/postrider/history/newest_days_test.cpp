#include "postrider/history/newest_days.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "postrider/model/ids.hpp"

namespace postrider::history {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

const base::Timestamp kNow = *base::parse_rfc3339("2026-11-18T05:00:00Z");

base::Uuid last_id() {
  base::Uuid id;
  id.bytes.fill(0xFF);
  return id;
}

TEST(LowerBounds, BeginADayBeforeNowAndEndWithTheWholeRange) {
  EXPECT_THAT(lower_bounds(last_id(), {}, kNow), ElementsAre(model::id_floor(kNow - 24h), base::Uuid{}));
  const base::Uuid from = model::id_floor(kNow - 240h);
  EXPECT_THAT(lower_bounds(last_id(), from, kNow), ElementsAre(model::id_floor(kNow - 24h), from));
}

TEST(LowerBounds, OfAnOlderPageBeginADayBeforeIt) {
  EXPECT_THAT(lower_bounds(model::id_floor(kNow - 100h), {}, kNow),
              ElementsAre(model::id_floor(kNow - 124h), base::Uuid{}));
}

TEST(LowerBounds, OfAShortRangeAreTheRangeItself) {
  const base::Uuid from = model::id_floor(kNow - 2h);
  EXPECT_THAT(lower_bounds(last_id(), from, kNow), ElementsAre(from));
  EXPECT_THAT(lower_bounds({}, {}, kNow), ElementsAre(base::Uuid{})) << "before all ids";
}

}  // namespace
}  // namespace postrider::history
