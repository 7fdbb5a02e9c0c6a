#include "postrider/api/wire/export.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postrider::api {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ExportItems, AreTheBytesOfThePage) {
  EXPECT_THAT(items_of_page(R"({"data":[{"a":1,"b":{"c":[{}]}},{"d":"}]\"{"}],"next_cursor":"x"})"),
              ElementsAre(R"({"a":1,"b":{"c":[{}]}})", R"({"d":"}]\"{"})"));
  EXPECT_THAT(items_of_page(R"({"data":[]})"), IsEmpty());
  EXPECT_THAT(items_of_page(R"({"data":[{"a":"\\"},{"b":12345678901234567890}]})"),
              ElementsAre(R"({"a":"\\"})", R"({"b":12345678901234567890})"));
}

TEST(Csv, QuotesWhatRfc4180WantsQuoted) {
  EXPECT_EQ(csv_line({"a", "b c", ""}), "a,b c,\r\n");
  EXPECT_EQ(csv_line({"a,b", "say \"hi\"", "two\r\nlines"}),
            "\"a,b\",\"say \"\"hi\"\"\",\"two\r\nlines\"\r\n");
}

TEST(Csv, NoTextBecomesAFormula) {
  for (const char* text : {"=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx"})
    EXPECT_EQ(csv_text(text), std::string("'") + text);
  EXPECT_EQ(csv_text("a=1"), "a=1");
  EXPECT_EQ(csv_text(""), "");
}

}  // namespace
}  // namespace postrider::api
