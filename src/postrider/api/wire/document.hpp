// Reads JSON documents that callers send, field by field, and collects every problem with a pointer to its
// field.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/api/wire/problems.hpp"
#include "postrider/base/result.hpp"
#include "postrider/http/request.hpp"

namespace postrider::api {

inline constexpr size_t json_depth_max = 64;

// The body is application/json, or has no Content-Type.
bool is_json(const http::Request& request);

// 415, 400, or 422 if it is no object. An absent body is an empty object only where `may_be_empty`.
enum class Body { required, may_be_empty };
base::Result<boost::json::object, http::Problem> parse_body(const http::Request& request,
                                                            Body body = Body::required);

struct TextRule {
  size_t bytes_max;
  bool may_be_empty = false;
};
struct IntegerRule {
  int64_t min;
  int64_t max;
};
struct NumberRule {
  double max;
  double min = 0.001;  // of rates: less than one per 15 minutes would be a pause
};

// One object. A field that is not there leaves its target alone; null resets an optional one to nothing, and
// one with a default to its default. Every read marks the field as known.
class Fields {
 public:
  // `at` is the pointer to the object itself, "" for the document.
  Fields(const boost::json::object& object, std::string at, FieldProblems& problems)
      : object_(object), at_(std::move(at)), problems_(problems) {}

  const boost::json::value* take(std::string_view name);  // null pointer: not there
  bool has(std::string_view name) const { return object_.contains(name); }
  void require(std::string_view name);

  void read(std::string_view name, std::string& target, const TextRule& rule);  // null is rejected
  void read(std::string_view name, std::optional<std::string>& target, const TextRule& rule);
  void read(std::string_view name, int32_t& target, const IntegerRule& rule, int32_t default_value);
  void read(std::string_view name, std::optional<int32_t>& target, const IntegerRule& rule);
  void read(std::string_view name, std::optional<double>& target, const NumberRule& rule);
  void read(std::string_view name, bool& target);
  // A JSON object, kept as text.
  void read_object(std::string_view name, std::optional<std::string>& target, size_t bytes_max);
  // One of a closed list, read by `parse`; null is the default.
  template <class Word>
  struct WordRule {
    std::optional<Word> (*parse)(std::string_view text);
    Word default_value;
    std::string_view choices;  // for the sentence: "none, strict"
  };
  template <class Word>
  void read(std::string_view name, Word& target, const WordRule<Word>& rule) {
    const auto* value = take(name);
    if (!value) return;
    if (value->is_null()) {
      target = rule.default_value;
      return;
    }
    const auto text = text_of(*value);
    const auto word = text ? rule.parse(*text) : std::nullopt;
    if (word)
      target = *word;
    else
      reject(name, "must be one of: " + std::string(rule.choices));
  }

  void reject(std::string_view name, std::string detail);
  void reject(std::string_view name, size_t index, std::string detail);  // an element of an array
  std::string pointer(std::string_view name) const;

  // Reports unknown fields.
  void finish();

 private:
  static std::optional<std::string_view> text_of(const boost::json::value& value);

  const boost::json::object& object_;
  std::string at_;
  FieldProblems& problems_;
  std::vector<std::string> known_;
};

// Text that Postgres and people can take: no NUL. (That it is UTF-8 was checked by the parser.)
bool is_storable(std::string_view text);
bool is_storable(const boost::json::value& value);

}  // namespace postrider::api
