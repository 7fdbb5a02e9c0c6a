#include "postrider/api/wire/header_rules.hpp"

#include <algorithm>
#include <array>

namespace postrider::api {

namespace {

constexpr std::array<std::string_view, 27> kReserved{
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "date",
    "expect",
    "forwarded",
    "host",
    "http2-settings",
    "keep-alive",
    "max-forwards",
    "origin",
    "te",
    "trailer",
    "traceparent",
    "tracestate",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
    "range",
    "content-range",
    "close",
    "proxy-connection",
    "set-cookie",
};
constexpr std::array<std::string_view, 4> kReservedPrefixes{"webhook-", "x-webhook-", "proxy-",
                                                            "x-forwarded-"};

bool is_token_character(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_value_character(char c) {
  return (c >= 0x20 && c < 0x7F) || c == '\t';
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  return result;
}

bool is_reserved(const std::string& name) {
  if (std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end()) return true;
  return std::any_of(kReservedPrefixes.begin(), kReservedPrefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace

std::optional<std::string> why_not_header(std::string_view name, std::string_view value, size_t bytes_max) {
  if (name.empty() || !std::all_of(name.begin(), name.end(), is_token_character))
    return "is not a valid header name";
  if (is_reserved(lower(name))) return "is a reserved header";
  if (name.size() + value.size() > bytes_max) return "is longer than " + std::to_string(bytes_max) + " bytes";
  if (!std::all_of(value.begin(), value.end(), is_value_character))
    return "must have a value of printable ASCII characters";
  if (value.starts_with(' ') || value.starts_with('\t') || value.ends_with(' ') || value.ends_with('\t'))
    return "must have a value without leading or trailing white space";
  if (value == masked_value) return "has the masked value that responses show; send the real value";
  return std::nullopt;
}

}  // namespace postrider::api
