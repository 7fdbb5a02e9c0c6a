#include "postrider/http/request.hpp"

#include <algorithm>
#include <array>

#include "postrider/base/check.hpp"
#include "postrider/http/request_grammar.hpp"

namespace postrider::http {

namespace {

constexpr std::array<std::string_view, 8> kMethodNames = {"GET",   "HEAD",   "POST",    "PUT",
                                                          "PATCH", "DELETE", "OPTIONS", "other"};

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

// Length of the UTF-8 sequence at the start of `text`, or 0 when it is not one.
size_t utf8_sequence(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i)
    if (!is_continuation(text[i])) return 0;
  const auto second = static_cast<unsigned char>(text[1]);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool beyond = (first == 0xED && second > 0x9F) || (first == 0xF4 && second > 0x8F);
  return overlong || beyond ? 0 : length;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_sequence(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace

std::string_view method_name(Method method) {
  return kMethodNames[static_cast<size_t>(method)];
}

Method parse_method(std::string_view name) {
  const auto end = kMethodNames.end() - 1;
  return static_cast<Method>(std::find(kMethodNames.begin(), end, name) - kMethodNames.begin());
}

std::optional<std::string_view> Request::header(std::string_view name) const {
  for (const Field& field : fields)
    if (equals_ignoring_case(field.name, name)) return field.value;
  return std::nullopt;
}

std::optional<std::string_view> Request::query_value(std::string_view name) const {
  for (const Parameter& parameter : query)
    if (parameter.name == name) return parameter.value;
  return std::nullopt;
}

std::string_view Request::path_parameter(std::string_view name) const {
  const auto found = std::find_if(path_parameters.begin(), path_parameters.end(),
                                  [&](const Parameter& parameter) { return parameter.name == name; });
  CHECK(found != path_parameters.end());
  return found->value;
}

std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = hex_value(text[i + 1]), low = hex_value(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += plus_is_space && text[i] == '+' ? ' ' : text[i];
    }
  }
  if (!is_utf8(out) || out.find('\0') != std::string::npos) return std::nullopt;
  return out;
}

std::optional<std::vector<Parameter>> parse_query(std::string_view query) {
  std::vector<Parameter> parameters;
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (pair.empty()) continue;
    const size_t equals = std::min(pair.find('='), pair.size());
    auto name = percent_decode(pair.substr(0, equals), true);
    auto value = percent_decode(pair.substr(std::min(equals + 1, pair.size())), true);
    if (!name || !value) return std::nullopt;
    parameters.push_back({std::move(*name), std::move(*value)});
  }
  return parameters;
}

}  // namespace postrider::http
