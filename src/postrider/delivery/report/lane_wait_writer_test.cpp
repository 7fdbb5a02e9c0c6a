#include "postrider/delivery/report/lane_wait_writer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postrider::delivery {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

LaneWait wait_of(uint8_t endpoint, WaitReason reason = WaitReason::rate, int64_t epoch = 1) {
  LaneWait wait{.endpoint = {}, .is_retry = false, .bucket = 2, .epoch = epoch, .reason = reason};
  wait.endpoint.uuid.bytes[15] = endpoint;
  return wait;
}

TEST(LaneWaitChanges, OnlyWhatIsNewOrDifferentOrOver) {
  const LaneWait braked = wait_of(2, WaitReason::brake), taken = wait_of(4, WaitReason::rate, 5);
  EXPECT_THAT(
      changes_of({wait_of(1), wait_of(2), wait_of(4), wait_of(5)}, {wait_of(1), braked, wait_of(3), taken}),
      ElementsAre(LaneWaitChange{braked}, LaneWaitChange{wait_of(3)}, LaneWaitChange{taken},
                  LaneWaitChange{wait_of(5), true}));
}

TEST(LaneWaitChanges, NothingIsWrittenWhileNothingChanges) {
  EXPECT_THAT(changes_of({wait_of(1), wait_of(2)}, {wait_of(1), wait_of(2)}), IsEmpty());
  EXPECT_THAT(changes_of({}, {}), IsEmpty());
}

}  // namespace
}  // namespace postrider::delivery
