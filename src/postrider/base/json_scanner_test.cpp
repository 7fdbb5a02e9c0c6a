#include "postrider/base/json_scanner.hpp"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <random>
#include <string>
#include <vector>

namespace postrider::base {
namespace {

bool is_json(std::string_view text) {
  JsonScanner json(text);
  std::string_view raw;
  return json.value(raw) && json.finish();
}

std::string nested(int depth) {
  return std::string(static_cast<size_t>(depth), '[') + std::string(static_cast<size_t>(depth), ']');
}

TEST(JsonScanner, TakesWhatTheGrammarAllows) {
  for (const char* text :
       {"0", "-0", "1.5e-7", "123456789012345678901234567890", "1e999", R"("\ud800")", R"("\u0000\/\b")",
        " [ ] ", "{ }", R"({"a":[1,{"b":null}],"c":true , "d":false})", "\"\x7f\"", R"("ä")", "\t\n\r 1 "})
    EXPECT_TRUE(is_json(text)) << text;
}

TEST(JsonScanner, RefusesEverythingElse) {
  for (const char* text : {"",
                           " ",
                           "01",
                           "-",
                           "1.",
                           ".5",
                           "1e",
                           "+1",
                           "NaN",
                           "tru",
                           "truex",
                           "[1,]",
                           "[,1]",
                           "[1 2]",
                           "[1",
                           "]",
                           "{\"a\"}",
                           "{a:1}",
                           "{\"a\":1,}",
                           "{\"a\":}",
                           "{\"a\" 1}",
                           "\"a",
                           "\"\\",
                           "\"\\x\"",
                           "\"\\u12",
                           "1 2",
                           "\"\n\"",
                           "'a'",
                           "\"\\u12g4\"",
                           "[1}",
                           "{]",
                           "/**/1",
                           "\"\xff\"",
                           "\"\xc0\x80\"",
                           "\"\xed\xa0\x80\""})
    EXPECT_FALSE(is_json(text)) << text;
  EXPECT_FALSE(is_json(std::string_view("1\0", 2)));
  EXPECT_FALSE(is_json(std::string_view("\"a\0b\"", 5)));
}

TEST(JsonScanner, LimitsDepth) {
  EXPECT_TRUE(is_json(nested(64)));
  EXPECT_FALSE(is_json(nested(65)));
  EXPECT_FALSE(is_json(nested(100'000)));
  EXPECT_TRUE(is_json("[" + nested(63) + "," + nested(63) + "]"));
}

TEST(JsonScanner, HandsOutTheRawBytes) {
  JsonScanner json(R"( {"a" : [1, {"x":"}"}] , "\u0062":1.0e+00, "c":"\"" } )");
  std::string_view key, raw;
  ASSERT_TRUE(json.begin_object());
  ASSERT_TRUE(json.next_member(key) && json.value(raw));
  EXPECT_EQ(key, "a");
  EXPECT_EQ(raw, R"([1, {"x":"}"}])");
  ASSERT_TRUE(json.next_member(key) && json.value(raw));
  EXPECT_EQ(unescape_json(key), "b");
  EXPECT_EQ(raw, "1.0e+00");
  ASSERT_TRUE(json.next_member(key) && json.value(raw));
  EXPECT_EQ(raw, R"("\"")");
  EXPECT_FALSE(json.next_member(key));
  EXPECT_TRUE(json.finish());
}

TEST(JsonScanner, SaysWhereItWentWrong) {
  JsonScanner json("[1,]");
  std::string_view raw;
  EXPECT_FALSE(json.value(raw));
  EXPECT_EQ(json.error(), "invalid JSON at byte 3: expected a value");
}

TEST(UnescapeJson, GivesTheTextOrNothingForALoneSurrogate) {
  EXPECT_EQ(unescape_json(R"(a\n\"\u00e4\ud83d\ude00/)"), "a\n\"ä\xF0\x9F\x98\x80/");
  for (const char* lone : {R"(\ud83d)", R"(\ude00)", R"(\ud83d\n)", R"(\ud83d\ud83d)"})
    EXPECT_EQ(unescape_json(lone), std::nullopt) << lone;
}

// An independent check: simdjson agrees on every text, except for numbers it cannot represent and lone
// surrogates.
TEST(JsonScanner, AgreesWithSimdjsonOnMutatedDocuments) {
  const std::vector<std::string> seeds = {
      R"({"type":"a.b","data":{"x":[1,2.5,-3e4,true,null],"y":"\u00e4\"z\\"},"id":"q"})",
      R"([[],{},[{}],"",0,-1.0E+2,false,"longer than eight bytes, really"])", R"("\ud83d\ude00ä€")"};
  const std::string pool = "{}[]\",:\\ 019.-+eEtrufalsn\n\t\x01\x7f\xc3\xa4\xff";
  constexpr unsigned kSeed = 20260408;
  std::mt19937 random(kSeed);
  simdjson::dom::parser parser;
  ASSERT_EQ(parser.allocate(1 << 16, 64), simdjson::SUCCESS);
  int valid = 0;
  for (int round = 0; round < 200'000; ++round) {
    std::string text = seeds[random() % seeds.size()];
    for (unsigned edits = 1 + random() % 3; edits > 0 && !text.empty(); --edits) {
      const size_t at = random() % text.size();
      const char c = pool[random() % pool.size()];
      if (random() % 3 == 0)
        text.erase(at, 1 + random() % 4);
      else if (random() % 2 == 0)
        text[at] = c;
      else
        text.insert(at, 1, c);
    }
    const auto error = parser.parse(text).error();
    const bool ours = is_json(text);
    valid += ours ? 1 : 0;
    if (error == simdjson::NUMBER_ERROR || error == simdjson::STRING_ERROR) continue;
    ASSERT_EQ(ours, error == simdjson::SUCCESS) << "seed " << kSeed << ": " << text;
  }
  EXPECT_GT(valid, 10'000);
}

}  // namespace
}  // namespace postrider::base
