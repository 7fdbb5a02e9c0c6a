#include "postrider/cli/manifest/manifest.hpp"

#include <gmock/gmock.h>

#include <boost/json/parse.hpp>

#include "postrider/cli/manifest/difference.hpp"

namespace postrider::cli {
namespace {

namespace json = boost::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string error_of(const std::string& text) {
  try {
    parse_manifest(parse_yaml(text));
  } catch (const ManifestError& error) {
    return error.what();
  }
  return "";
}

TEST(Yaml, ScalarsHaveTheTypesOfTheCoreSchema) {
  const json::value read = parse_yaml(
      "{a: 1, b: -2.5, c: true, d: null, e: ~, f: 'true', g: \"7\", h: yes, i: 1e3, j: 2026-04-08, k: , l: "
      "+5}");
  EXPECT_EQ(read, json::parse(R"({"a":1,"b":-2.5,"c":true,"d":null,"e":null,"f":"true","g":"7","h":"yes",
                                  "i":1000.0,"j":"2026-04-08","k":null,"l":5})"));
}

TEST(Yaml, JsonIsYaml) {
  const std::string text = R"({"a": [1, {"b": "\u00e9\n"}], "c": {}})";
  EXPECT_EQ(parse_yaml(text), json::parse(text));
}

TEST(Yaml, ErrorsNameTheLine) {
  EXPECT_THAT(error_of("tenants:\n  - id: [a\n"), HasSubstr("line "));
  EXPECT_EQ(error_of("tenants:\n- id: a\n  name: x\n  name: y\n"), "line 4: the key `name` is repeated");
  EXPECT_THAT(error_of("a: 1\n---\nb: 2\n"), HasSubstr("several documents"));
}

TEST(Yaml, AliasesCannotMakeASmallFileLarge) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int n = 0; n < 10; ++n) text += before + (n < 9 ? ", " : "]\n");
  }
  EXPECT_THAT(error_of(text), HasSubstr("more than a million values"));
}

TEST(ParseManifest, SectionsBecomeEntriesWithIdsAndFields) {
  const Manifest manifest = parse_manifest(parse_yaml(R"(
event_types:
- {name: invoice.paid, validation: reject}
tenants:
- id: acme
  name: Acme
  endpoints:
  - {id: orders, url: "https://hooks.example/x", secret: "env:ACME"}
sources:
- {id: stripe, provider: stripe, secret: "file:/etc/stripe"}
portal: {name: Example}
)"));
  EXPECT_EQ(manifest.event_types.at(0).id, "invoice.paid");
  EXPECT_EQ(manifest.tenants.at(0).fields, json::parse(R"({"name":"Acme"})").as_object());
  EXPECT_EQ(manifest.tenants.at(0).endpoints.at(0).id, "orders");
  EXPECT_EQ(manifest.sources.at(0).fields.at("provider"), "stripe");
  EXPECT_EQ(manifest.portal.at("name"), "Example");
}

TEST(ParseManifest, AnEmptyFileIsAnEmptyManifest) {
  EXPECT_EQ(error_of(""), "");
  EXPECT_EQ(error_of("tenants:\nevent_types:\n"), "");
}

TEST(ParseManifest, MistakesAreNamed) {
  EXPECT_THAT(error_of("tenant: []"), HasSubstr("`tenant` is not a section"));
  EXPECT_THAT(error_of("tenants: [{name: x}]"), HasSubstr("entry 1 of `tenants` needs `id`"));
  EXPECT_THAT(error_of("tenants: [{id: a}, {id: a}]"), HasSubstr("`a` is in `tenants` twice"));
  EXPECT_THAT(error_of("tenants: {id: a}"), HasSubstr("`tenants` must be a list"));
  EXPECT_THAT(error_of("tenants: [a]"), HasSubstr("must be a mapping"));
  EXPECT_THAT(error_of("sources: [{id: s, secret: whsec_abc}]"),
              HasSubstr("`secret` of `s` must be a reference"));
  EXPECT_THAT(error_of("tenants: [{id: a, endpoints: [{id: e, secret: plain}]}]"), HasSubstr("no secrets"));
}

std::vector<std::string> changed(const char* current, const char* wanted) {
  std::vector<std::string> fields;
  for (const Change& change : difference(json::parse(current).as_object(), json::parse(wanted).as_object()))
    fields.push_back(change.field);
  return fields;
}

TEST(Difference, OnlyWhatTheManifestNamesCanChange) {
  EXPECT_THAT(changed(R"({"a":1,"b":2})", R"({"a":1})"), IsEmpty());
  EXPECT_THAT(changed(R"({"a":1,"b":2})", R"({"b":3,"c":"x"})"), ElementsAre("b", "c"));
  EXPECT_THAT(changed(R"({"a":1})", R"({"a":null})"), ElementsAre("a"));
}

TEST(Difference, EqualMeaningIsNoChange) {
  EXPECT_THAT(changed(R"({"n":5})", R"({"n":5.0})"), IsEmpty());
  EXPECT_THAT(changed(R"({"types":["a","b"]})", R"({"types":["b","a"]})"), IsEmpty());
  EXPECT_THAT(changed(R"({"headers":{"x-key":"***"}})", R"({"headers":{"x-key":"value"}})"), IsEmpty());
  EXPECT_THAT(changed(R"({"v":[{"version":"1","schema":null}]})", R"({"v":[{"version":"1"}]})"), IsEmpty());
}

TEST(Difference, ListsAndMappingsAreReplacedAsAWhole) {
  EXPECT_THAT(changed(R"({"types":["a"]})", R"({"types":["a","b"]})"), ElementsAre("types"));
  EXPECT_THAT(changed(R"({"schedule":[1,2]})", R"({"schedule":[2,1]})"), ElementsAre("schedule"));
  EXPECT_THAT(changed(R"({"headers":{"a":"***","b":"***"}})", R"({"headers":{"a":"1"}})"),
              ElementsAre("headers"));
}

}  // namespace
}  // namespace postrider::cli
