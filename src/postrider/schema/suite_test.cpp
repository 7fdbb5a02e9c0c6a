// The official test suites, as Debian packages them. What does not pass is listed here, with the reason; a
// test that begins to pass or to fail is a change that must be seen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "postrider/schema/schema.hpp"

namespace postrider::schema {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr const char* kPlain = "/usr/share/json-schema-test-suite/tests/";
constexpr const char* kPerl = "/usr/share/perl5/auto/share/dist/Test-JSON-Schema-Acceptance/tests/";

std::string read(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Score {
  int passed = 0, total = 0;
  std::set<std::string> failed_groups;
};

// Schemas without $schema are of the draft whose folder they are in.
std::string with_draft(const json::value& schema, std::string_view uri) {
  if (!schema.is_object() || schema.get_object().contains("$schema")) return json::serialize(schema);
  json::object copy;
  copy.emplace("$schema", uri);
  for (const auto& member : schema.get_object()) copy.emplace(member.key(), member.value());
  return json::serialize(copy);
}

Score run_suite(const fs::path& folder, std::string_view draft_uri) {
  Score score;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    const json::value groups = json::parse(read(entry.path()));
    for (const json::value& group : groups.as_array()) {
      const auto schema = Schema::compile(with_draft(group.at("schema"), draft_uri));
      for (const json::value& test : group.at("tests").as_array()) {
        ++score.total;
        const bool is_valid = schema.ok() && schema->accepts(test.at("data"));
        const bool passes = schema.ok() && is_valid == test.at("valid").as_bool();
        if (schema.ok()) {
          EXPECT_EQ(schema->check(test.at("data")).is_valid, is_valid);
        }
        score.passed += passes ? 1 : 0;
        if (!passes)
          score.failed_groups.insert(entry.path().filename().string() + ": " +
                                     std::string(group.at("description").as_string()));
      }
    }
  }
  std::printf("%s: %d of %d\n", folder.c_str(), score.passed, score.total);
  return score;
}

constexpr std::string_view kDraft07 = "http://json-schema.org/draft-07/schema#";
constexpr std::string_view kDraft2020 = "https://json-schema.org/draft/2020-12/schema";

TEST(Suite, Draft07OfThePlainPackage) {
  const Score score = run_suite(std::string(kPlain) + "draft7", kDraft07);
  ASSERT_GT(score.total, 0) << "apt install json-schema-test-suite";
  EXPECT_EQ(score.failed_groups,
            (std::set<std::string>{
                "definitions.json: invalid definition", "definitions.json: valid definition",
                "ref.json: remote ref, containing refs itself", "refRemote.json: base URI change",
                "refRemote.json: base URI change - change folder",
                "refRemote.json: base URI change - change folder in subschema",
                "refRemote.json: fragment within remote ref", "refRemote.json: ref within remote ref",
                "refRemote.json: remote ref", "refRemote.json: root ref in remote ref"}));
}

TEST(Suite, Draft07OfThePerlPackage) {
  const Score score = run_suite(std::string(kPerl) + "draft7", kDraft07);
  ASSERT_GT(score.total, 0) << "apt install libtest-json-schema-acceptance-perl";
  EXPECT_EQ(score.failed_groups,
            (std::set<std::string>{
                "definitions.json: validate definition against metaschema",
                "ref.json: remote ref, containing refs itself",
                "refRemote.json: Location-independent identifier in remote ref",
                "refRemote.json: base URI change", "refRemote.json: base URI change - change folder",
                "refRemote.json: base URI change - change folder in subschema",
                "refRemote.json: fragment within remote ref", "refRemote.json: ref within remote ref",
                "refRemote.json: remote ref", "refRemote.json: remote ref with ref to definitions",
                "refRemote.json: retrieved nested refs resolve relative to their URI not $id",
                "refRemote.json: root ref in remote ref"}));
}

TEST(Suite, Draft202012OfThePerlPackage) {
  const Score score = run_suite(std::string(kPerl) + "draft2020-12", kDraft2020);
  ASSERT_GT(score.total, 0) << "apt install libtest-json-schema-acceptance-perl";
  EXPECT_EQ(score.failed_groups,
            (std::set<std::string>{
                "anchor.json: invalid anchors",
                "defs.json: validate definition against metaschema",
                "dynamicRef.json: $ref and $dynamicAnchor are independent of order - $defs first",
                "dynamicRef.json: $ref and $dynamicAnchor are independent of order - $ref first",
                "dynamicRef.json: strict-tree schema, guards against misspelled properties",
                "dynamicRef.json: tests for implementation dynamic anchor and reference link",
                "id.json: Invalid use of fragments in location-independent $id",
                "id.json: Unnormalized $ids are allowed but discouraged",
                "id.json: Valid use of empty fragments in location-independent $id",
                "ref.json: URN base URI with f-component",
                "ref.json: remote ref, containing refs itself",
                "refRemote.json: Location-independent identifier in remote ref",
                "refRemote.json: anchor within remote ref",
                "refRemote.json: base URI change",
                "refRemote.json: base URI change - change folder",
                "refRemote.json: base URI change - change folder in subschema",
                "refRemote.json: fragment within remote ref",
                "refRemote.json: ref within remote ref",
                "refRemote.json: remote HTTP ref with different $id",
                "refRemote.json: remote HTTP ref with different URN $id",
                "refRemote.json: remote HTTP ref with nested absolute ref",
                "refRemote.json: remote ref",
                "refRemote.json: remote ref with ref to defs",
                "refRemote.json: retrieved nested refs resolve relative to their URI not $id",
                "refRemote.json: root ref in remote ref",
                "vocabulary.json: ignore unrecognized optional vocabulary",
                "vocabulary.json: schema that uses custom metaschema with with no validation vocabulary"}));
}

}  // namespace
}  // namespace postrider::schema
