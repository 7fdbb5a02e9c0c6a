#include "postrider/pg/error.hpp"

#include <gtest/gtest.h>

namespace postrider::pg {
namespace {

TEST(Error, TheStateDecidesWhatTheCallerMayDo) {
  for (const char* state : {"40001", "40P01", "55P03", "57014"})
    EXPECT_EQ(kind_of(state), Kind::retry) << state;
  for (const char* state : {"22012", "23505", "23514", "54000"})
    EXPECT_EQ(kind_of(state), Kind::item) << state;
  for (const char* state : {"08006", "08P01", "57P01", "57P03"})
    EXPECT_EQ(kind_of(state), Kind::unknown) << state;
  for (const char* state : {"42P01", "42501", "25006", "XX000", ""})
    EXPECT_EQ(kind_of(state), Kind::other) << state;
}

TEST(Error, SomeTroublesAreTheServersWhateverItIsGiven) {
  for (const char* state : {"53100", "53200", "53300", "58000", "58030"}) {
    EXPECT_TRUE(is_server_fault(state)) << state;
    EXPECT_EQ(kind_of(state), Kind::other) << state;
  }
  for (const char* state : {"42P01", "42501", "23505", "54000", "XX000", "XX001", ""})
    EXPECT_FALSE(is_server_fault(state)) << state;
}

}  // namespace
}  // namespace postrider::pg
