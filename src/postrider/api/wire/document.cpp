#include "postrider/api/wire/document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parser.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <utility>

#include "postrider/api/wire/duplicate_fields.hpp"
#include "postrider/base/encoding.hpp"

namespace postrider::api {

namespace json = boost::json;

bool is_json(const http::Request& request) {
  if (const auto coding = request.header("content-encoding"); coding && *coding != "identity") return false;
  const auto field = request.header("content-type");
  if (!field) return true;
  std::string_view type = field->substr(0, field->find(';'));
  while (type.ends_with(' ') || type.ends_with('\t')) type.remove_suffix(1);
  constexpr std::string_view wanted = "application/json";
  return std::equal(type.begin(), type.end(), wanted.begin(), wanted.end(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + ('a' - 'A') : a) == b; });
}

base::Result<json::object, http::Problem> parse_body(const http::Request& request, Body body) {
  if (request.body.empty() && body == Body::may_be_empty) return json::object();
  if (!is_json(request)) return base::Failure{not_json()};
  json::parse_options options;
  options.max_depth = json_depth_max;
  json::parser parser({}, options);
  json::error_code error;
  const size_t parsed = parser.write_some(request.body, error);
  if (!error && parsed < request.body.size()) error = json::error::extra_data;
  if (request.body.empty()) return base::Failure{malformed("The request body is empty.")};
  if (error)
    return base::Failure{malformed(fmt::format("Invalid JSON at byte {}: {}.", parsed, error.message()))};
  json::value document = parser.release();
  if (const auto twice = find_duplicate_field(request.body))
    return base::Failure{invalid({{*twice, "duplicate field"}})};
  if (!document.is_object()) return base::Failure{invalid({{"", "must be an object"}})};
  return std::move(document.get_object());
}

bool is_storable(std::string_view text) {
  return text.find('\0') == std::string_view::npos;
}

bool is_storable(const json::value& value) {
  if (const auto* text = value.if_string()) return is_storable(std::string_view(*text));
  if (const auto* array = value.if_array())
    return std::all_of(array->begin(), array->end(), [](const auto& item) { return is_storable(item); });
  if (const auto* object = value.if_object())
    return std::all_of(object->begin(), object->end(), [](const auto& member) {
      return is_storable(std::string_view(member.key())) && is_storable(member.value());
    });
  return true;
}

const json::value* Fields::take(std::string_view name) {
  known_.emplace_back(name);
  return object_.if_contains(name);
}

void Fields::require(std::string_view name) {
  if (!has(name)) reject(name, "is required");
}

std::optional<std::string_view> Fields::text_of(const json::value& value) {
  const auto* text = value.if_string();
  if (!text) return std::nullopt;
  return std::string_view(*text);
}

void Fields::read(std::string_view name, std::string& target, const TextRule& rule) {
  const auto* value = take(name);
  if (!value) return;
  const auto text = text_of(*value);
  if (!text) return reject(name, "must be a string");
  if (text->empty() && !rule.may_be_empty) return reject(name, "must not be empty");
  if (text->size() > rule.bytes_max)
    return reject(name, "must not be longer than " + std::to_string(rule.bytes_max) + " bytes");
  if (!is_storable(*text)) return reject(name, "must not contain the character U+0000");
  target = *text;
}

void Fields::read(std::string_view name, std::optional<std::string>& target, const TextRule& rule) {
  if (const auto* value = object_.if_contains(name); value && value->is_null()) {
    known_.emplace_back(name);
    target.reset();
  } else if (value) {
    const size_t problems_before = problems_.size();
    std::string text;
    read(name, text, rule);
    if (problems_.size() == problems_before) target = std::move(text);
  } else {
    known_.emplace_back(name);
  }
}

void Fields::read(std::string_view name, std::optional<int32_t>& target, const IntegerRule& rule) {
  const auto* value = take(name);
  if (!value) return;
  if (value->is_null()) return target.reset();
  json::error_code error;
  const auto number = value->is_double() ? 0 : value->to_number<int64_t>(error);
  if (value->is_double() || error || number < rule.min || number > rule.max)
    return reject(name,
                  "must be an integer from " + std::to_string(rule.min) + " to " + std::to_string(rule.max));
  target = static_cast<int32_t>(number);
}

void Fields::read(std::string_view name, int32_t& target, const IntegerRule& rule, int32_t default_value) {
  std::optional<int32_t> number = target;
  read(name, number, rule);
  target = number.value_or(default_value);
}

void Fields::read(std::string_view name, std::optional<double>& target, const NumberRule& rule) {
  const auto* value = take(name);
  if (!value) return;
  if (value->is_null()) return target.reset();
  const double number = value->is_number() ? value->to_number<double>() : 0;
  if (!(number >= rule.min && number <= rule.max))
    return reject(name, fmt::format("must be a number from {} to {:.0f}", rule.min, rule.max));
  target = number;
}

void Fields::read(std::string_view name, bool& target) {
  const auto* value = take(name);
  if (!value) return;
  if (!value->is_bool()) return reject(name, "must be true or false");
  target = value->get_bool();
}

void Fields::read_object(std::string_view name, std::optional<std::string>& target, size_t bytes_max) {
  const auto* value = take(name);
  if (!value) return;
  if (value->is_null()) return target.reset();
  if (!value->is_object()) return reject(name, "must be an object");
  if (!is_storable(*value)) return reject(name, "must not contain the character U+0000");
  std::string text = json::serialize(*value);
  if (text.size() > bytes_max)
    return reject(name, "must not be longer than " + std::to_string(bytes_max) + " bytes");
  target = std::move(text);
}

std::string Fields::pointer(std::string_view name) const {
  return at_ + "/" + base::json_pointer_token(name);
}

void Fields::reject(std::string_view name, std::string detail) {
  problems_.push_back({pointer(name), std::move(detail)});
}

void Fields::reject(std::string_view name, size_t index, std::string detail) {
  problems_.push_back({pointer(name) + "/" + std::to_string(index), std::move(detail)});
}

void Fields::finish() {
  for (const auto& member : object_) {
    const std::string_view name = member.key();
    if (std::find(known_.begin(), known_.end(), name) == known_.end()) reject(name, "unknown field");
  }
}

}  // namespace postrider::api
