#include "postrider/schema/schema.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>

namespace postrider::schema {
namespace {

namespace json = boost::json;
using testing::HasSubstr;

Schema compiled(std::string_view text) {
  auto schema = Schema::compile(text);
  EXPECT_TRUE(schema.ok()) << schema.error().pointer << " " << schema.error().detail;
  return *schema;
}

std::string problem(std::string_view text) {
  const auto schema = Schema::compile(text);
  return schema.ok() ? "" : schema.error().pointer + ": " + schema.error().detail;
}

std::string repeated(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

TEST(SchemaViolations, PointToTheValueAndSayWhatIsWrong) {
  const Schema schema = compiled(R"({"type":"object","required":["id"],"properties":{
      "amount":{"type":"integer","minimum":1},
      "lines":{"type":"array","items":{"type":"object","properties":{"a/b":{"maxLength":3}}}}}})");
  const Report report = schema.check(json::parse(R"({"amount":0,"lines":[{},{"a/b":"four"}]})"));
  ASSERT_EQ(report.violations.size(), 3u);
  EXPECT_EQ(report.violations[0].pointer, "");
  EXPECT_EQ(report.violations[0].detail, "must have the member \"id\"");
  EXPECT_EQ(report.violations[1].pointer, "/amount");
  EXPECT_EQ(report.violations[2].pointer, "/lines/1/a~1b");
  EXPECT_EQ(report.violations[2].detail, "must have at most 3 characters");
}

TEST(SchemaViolations, AreLimitedInNumber) {
  const Schema schema = compiled(R"({"items":{"type":"string"}})");
  json::array many(1'000);
  EXPECT_EQ(schema.check(many).violations.size(), kViolationsMax);
}

TEST(SchemaNumbers, AreComparedExactlyBeyondWhatADoubleHolds) {
  const Schema schema = compiled(R"({"maximum":9007199254740993})");
  EXPECT_TRUE(schema.accepts(json::parse("9007199254740993")));
  EXPECT_FALSE(schema.accepts(json::parse("9007199254740994")));
  EXPECT_FALSE(schema.accepts(json::parse("18446744073709551615")));
  EXPECT_TRUE(compiled(R"({"const":1})").accepts(json::parse("1.0")));
  EXPECT_TRUE(compiled(R"({"type":"integer"})").accepts(json::parse("1e3")));
  EXPECT_FALSE(compiled(R"({"type":"integer"})").accepts(json::parse("1.5")));
}

TEST(BadSchemas, AreRefusedWithAPointerIntoTheSchema) {
  EXPECT_EQ(problem("[]"), ": must be a schema: an object, true or false");
  EXPECT_THAT(problem("{"), HasSubstr("is not valid JSON"));
  EXPECT_THAT(problem(R"({"properties":{"a":{"type":"strnig"}}})"),
              HasSubstr("/properties/a/type: must be one of"));
  EXPECT_THAT(problem(R"({"minLength":-1})"), HasSubstr("/minLength: must be an integer"));
  EXPECT_THAT(problem(R"({"allOf":[]})"), HasSubstr("/allOf: must be a non-empty array of schemas"));
  EXPECT_THAT(problem(R"x({"items":{"pattern":"(?=a)"}})x"), HasSubstr("/items/pattern: is not a pattern"));
  EXPECT_THAT(problem(R"({"multipleOf":0})"), HasSubstr("/multipleOf: must be above 0"));
  EXPECT_THAT(problem(R"({"$schema":"http://json-schema.org/draft-04/schema#"})"),
              HasSubstr("/$schema: must be"));
}

TEST(BadSchemas, NeverReachOutsideTheDocument) {
  EXPECT_THAT(problem(R"({"$ref":"http://169.254.169.254/latest"})"),
              HasSubstr("refers to another document"));
  EXPECT_THAT(problem(R"({"$ref":"file:///etc/passwd"})"), HasSubstr("refers to another document"));
  EXPECT_THAT(problem(R"({"$ref":"#/nowhere"})"), HasSubstr("does not exist"));
}

TEST(HostileSchemas, LoopsWithoutEndAreRefused) {
  EXPECT_THAT(problem(R"({"$ref":"#"})"), HasSubstr("endless loop"));
  EXPECT_THAT(
      problem(
          R"({"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"allOf":[{"$ref":"#/$defs/a"}]}},"$ref":"#/$defs/a"})"),
      HasSubstr("endless loop"));
  EXPECT_EQ(problem(R"({"properties":{"child":{"$ref":"#"}}})"), "");
}

TEST(HostileSchemas, AnEndlessDynamicReferenceIsGivenUp) {
  const Schema schema = compiled(R"({"$dynamicAnchor":"a","$dynamicRef":"#a"})");
  const Report report = schema.check(json::parse("{}"));
  EXPECT_FALSE(report.is_valid);
  EXPECT_TRUE(report.gave_up);
}

TEST(HostileSchemas, ExponentialBranchingIsGivenUp) {
  std::string text = R"({"$defs":{"d0":{"type":"null"})";
  for (int i = 1; i <= 40; ++i) {
    const std::string before = R"({"$ref":"#/$defs/d)" + std::to_string(i - 1) + "\"}";
    text += ",\"d" + std::to_string(i) + R"(":{"anyOf":[)" + before + "," + before + "]}";
  }
  const Schema schema = compiled(text + R"(},"$ref":"#/$defs/d40"})");
  EXPECT_TRUE(schema.check(json::parse("1")).gave_up);
}

TEST(HostileSchemas, GivingUpUnderANotIsNoSuccess) {
  std::string text = R"({"$defs":{"d0":{"type":"null"})";
  for (int i = 1; i <= 40; ++i) {
    const std::string before = R"({"$ref":"#/$defs/d)" + std::to_string(i - 1) + "\"}";
    text += ",\"d" + std::to_string(i) + R"(":{"anyOf":[)" + before + "," + before + "]}";
  }
  EXPECT_FALSE(compiled(text + R"(},"not":{"$ref":"#/$defs/d40"}})").accepts(json::parse("1")));
}

TEST(HostileSchemas, PatternsAreLinearAndBounded) {
  const Schema schema = compiled(R"({"pattern":"^(a+)+$"})");
  EXPECT_FALSE(schema.accepts(json::value(std::string(30, 'a') + "!")));
  EXPECT_TRUE(compiled(R"({"pattern":"^(a|b)*$"})").accepts(json::value(std::string(200'000, 'a'))));
  EXPECT_THAT(problem(R"({"pattern":"((a{100}){100}){100}"})"), HasSubstr("/pattern: is not a pattern"));
  EXPECT_THAT(problem("{\"pattern\":\"" + repeated("a", 2'000) + "\"}"), HasSubstr("must not be longer"));
  std::string many = R"({"patternProperties":{)";
  for (int i = 0; i < 300; ++i) many += (i ? ",\"" : "\"") + std::to_string(i) + "\":true";
  EXPECT_THAT(problem(many + "}}"), HasSubstr("too many patterns"));
}

TEST(HostileSchemas, DepthAndSizeAreBounded) {
  EXPECT_NE(problem(repeated(R"({"not":)", 100) + "true" + repeated("}", 100)), "");
  EXPECT_THAT(problem("{\"description\":\"" + repeated("x", kSchemaBytesMax) + "\"}"),
              HasSubstr("must not be longer"));
}

TEST(HostileDocuments, UniqueItemsIsNotQuadratic) {
  const Schema schema = compiled(R"({"uniqueItems":true})");
  json::array many;
  for (int i = 0; i < 100'000; ++i) many.emplace_back(i);
  EXPECT_TRUE(schema.accepts(many));
  many.emplace_back(7.0);
  EXPECT_FALSE(schema.accepts(many));
}

TEST(Draft07, IgnoresWhatIsBesideARef) {
  const Schema schema = compiled(R"({"$schema":"http://json-schema.org/draft-07/schema#",
      "definitions":{"text":{"type":"string"}},"$ref":"#/definitions/text","maxLength":1})");
  EXPECT_TRUE(schema.accepts(json::value("long")));
}

}  // namespace
}  // namespace postrider::schema
