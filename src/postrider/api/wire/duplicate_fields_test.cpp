#include "postrider/api/wire/duplicate_fields.hpp"

#include <gtest/gtest.h>

namespace postrider::api {
namespace {

TEST(DuplicateFields, AreFoundWhereverTheyAre) {
  EXPECT_EQ(find_duplicate_field(R"({"a":1,"b":2,"a":3})"), "/a");
  EXPECT_EQ(find_duplicate_field(R"({"x":{"a":1},"y":[0,{"a/b":1,"c":"}","a/b":2}]})"), "/y/1/a~1b");
  EXPECT_EQ(find_duplicate_field(R"({"a":1,"\u0061":2})"), "/a");
}

TEST(DuplicateFields, TheSameNameInAnotherObjectIsNone) {
  EXPECT_EQ(find_duplicate_field(R"({"a":{"a":{"a":1}},"b":[{"a":1},{"a":"a"}],"c":"a","d":"\"a\":1,"})"),
            std::nullopt);
  EXPECT_EQ(find_duplicate_field(R"(["a","a"])"), std::nullopt);
  EXPECT_EQ(find_duplicate_field("{}"), std::nullopt);
}

}  // namespace
}  // namespace postrider::api
