#include "postrider/cli/output.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <sstream>

namespace postrider::cli {
namespace {

namespace json = boost::json;
using testing::HasSubstr;
using testing::Not;

const base::Timestamp kNow = *base::parse_rfc3339("2026-04-08T10:15:30Z");

std::string shown(const char* text) {
  return cell_text(json::parse(text));
}

json::array rows() {
  return json::parse(R"([{"id":"dlv_01a1ed9da9d270008000be9cec879229","detail":")" + std::string(200, 'x') +
                     R"(","at":"2026-04-08T10:12:30Z","none":null}])")
      .as_array();
}

const std::vector<Column>& columns() {
  static const std::vector<Column> all = {{"ID", "/id", Style::id},
                                          {"DETAIL", "/detail"},
                                          {"AGE", "/at", Style::age},
                                          {"NONE", "/none", Style::text, Column::Shown::if_any},
                                          {"AT", "/at", Style::time, Column::Shown::wide}};
  return all;
}

size_t longest_line(const std::string& text) {
  std::istringstream lines(text);
  size_t longest = 0;
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, display_width(line));
  return longest;
}

TEST(Cells, ShowNumbersAsPeopleWriteThem) {
  EXPECT_EQ(shown("5.062666666666667"), "5.062667");
  EXPECT_EQ(shown("7E-3"), "0.007");
  EXPECT_EQ(shown("20.0"), "20");
  EXPECT_EQ(shown("0.0"), "0");
  EXPECT_EQ(shown("-1.5"), "-1.5");
  EXPECT_EQ(shown("12345678.5"), "12345678.5");
  EXPECT_EQ(shown("100"), "100");
}

TEST(Cells, AreNeverJson) {
  EXPECT_EQ(shown(R"({"a":1,"b":null,"c":["x",true]})"), "a=1 c=x, yes");
  EXPECT_EQ(shown(R"(["a","b"])"), "a, b");
  EXPECT_EQ(shown("[]"), "-");
}

TEST(Cells, FollowTheirStyle) {
  const View view{.now = kNow, .columns = 80};
  EXPECT_EQ(styled(json::value(10002797), Style::microseconds, view), "10.0 s");
  EXPECT_EQ(styled(json::value(718.13), Style::milliseconds, view), "718 ms");
  EXPECT_EQ(styled(json::value(0.444444), Style::share, view), "44 %");
  EXPECT_EQ(styled(json::value(262144), Style::bytes, view), "256 KiB");
  EXPECT_EQ(styled(json::value("2026-04-08T10:12:30Z"), Style::age, view), "3m");
  EXPECT_EQ(styled(json::value("2026-04-08T10:16:30Z"), Style::age, view), "in 60s");
}

TEST(Tables, FitTheTerminal) {
  for (const size_t width : {80u, 100u, 140u}) {
    const std::string text = table_text(rows(), columns(), {.now = kNow, .columns = width});
    EXPECT_LE(longest_line(text), width);
    EXPECT_THAT(text, HasSubstr("dlv_01a1ed9da9d2-9229"));
    EXPECT_THAT(text, HasSubstr("…"));
    EXPECT_THAT(text, Not(HasSubstr("NONE")));
  }
}

TEST(Tables, FitTheTerminalEvenIfNoColumnCanBeCut) {
  const json::array numbers = {json::object{{"n", 1234567}}};
  const std::vector<Column> many(12, Column{"NUMBER", "/n", Style::yes_no});
  EXPECT_LE(longest_line(table_text(numbers, many, {.now = kNow, .columns = 80})), 80u);
}

TEST(Tables, AreWholeInAPipe) {
  const std::string text = table_text(rows(), columns(), {.now = kNow, .columns = 0});
  EXPECT_THAT(text, HasSubstr("dlv_01a1ed9da9d270008000be9cec879229"));
  EXPECT_THAT(text, HasSubstr(std::string(200, 'x')));
  EXPECT_THAT(text, HasSubstr("NONE"));
}

TEST(Tables, AreWholeAndHaveMoreColumnsWhenWide) {
  const std::string text = table_text(rows(), columns(), {.now = kNow, .columns = 80, .is_wide = true});
  EXPECT_THAT(text, HasSubstr("dlv_01a1ed9da9d270008000be9cec879229"));
  EXPECT_THAT(text, HasSubstr("2026-04-08 10:12:30 UTC"));
}

TEST(Records, AreGroupedAndLeaveOutWhatIsEmpty) {
  const json::value record = json::parse(
      R"({"id":"hooks","timeout_ms":10000,"headers":{},"reason":null,"created_at":"2026-04-08T10:12:30Z","new":{"a":[1]}})");
  const std::string text =
      record_text(record.as_object(), {{"", {"id", "reason"}}, {"Retries", {"timeout_ms", "headers"}}},
                  {.now = kNow, .columns = 80});
  EXPECT_EQ(text,
            "ID  hooks\n"
            "\nRetries\n  Timeout  10.0 s\n"
            "\nOther\n  Created  2026-04-08 10:12:30 UTC (3m ago)\n  New\n    a:\n    - 1\n");
}

TEST(Yaml, QuotesWhatCouldBeMisread) {
  EXPECT_EQ(
      yaml_text(json::parse(
          R"({"a":"plain text","b":"yes","c":"1.5","d":"a: b","e":[],"f":[{"x":1,"y":{"z":null}},"t"]})")),
      "a: plain text\nb: \"yes\"\nc: \"1.5\"\nd: \"a: b\"\ne: []\nf:\n- x: 1\n  \"y\":\n    z: null\n- t\n");
}

}  // namespace
}  // namespace postrider::cli
