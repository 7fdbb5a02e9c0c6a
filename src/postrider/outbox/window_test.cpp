#include "postrider/outbox/window.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postrider::outbox {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<OutboxRow> rows(int64_t xid, int64_t first, int64_t last) {
  std::vector<OutboxRow> made;
  for (int64_t id = first; id <= last; ++id) {
    OutboxRow row;
    row.xid = xid;
    row.id = id;
    made.push_back(row);
  }
  return made;
}

TEST(Window, TheFirstOneIsFullAndEndsWithAChunkWithoutRows) {
  Window window;
  window.begin(true);
  EXPECT_EQ(window.position().xid, 0);
  EXPECT_THAT(window.late(), IsEmpty());
  window.read("5:9:5,7", {}, rows(6, 1, 3));
  EXPECT_TRUE(window.is_open());
  EXPECT_EQ(window.position().xid, 6);
  EXPECT_EQ(window.position().id, 3);
  window.read("12:12:", {}, {});
  EXPECT_FALSE(window.is_open());
}

TEST(Window, TheNextOneBeginsWithWhatTheFirstChunkDidNotSee) {
  Window window;
  window.begin(true);
  window.read("5:9:5,7", {}, rows(6, 1, 3));
  window.read("12:12:", {}, {});  // 5 and 7 may have committed before this chunk, behind its position
  EXPECT_TRUE(window.is_anything_in_progress());
  window.begin(false);
  EXPECT_THAT(window.late(), ElementsAre("5", "7"));
  EXPECT_EQ(window.position().xid, 9);
  EXPECT_EQ(window.position().id, 0);
}

TEST(Window, LateRowsAreAskedForUntilThereAreNone) {
  Window window;
  window.begin(true);
  window.read("5:9:5,7", {}, {});
  window.begin(false);
  window.read("9:9:", rows(5, 1, 2), {});
  EXPECT_THAT(window.late(), ElementsAre("5", "7"));
  window.read("9:9:", {}, rows(9, 3, 3));
  EXPECT_THAT(window.late(), IsEmpty());
  EXPECT_TRUE(window.is_open());
  window.read("9:9:", {}, {});
  EXPECT_FALSE(window.is_open());
  EXPECT_FALSE(window.is_anything_in_progress());
}

}  // namespace
}  // namespace postrider::outbox
