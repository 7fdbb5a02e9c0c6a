#include "postrider/inbox/event_type.hpp"

#include <algorithm>

#include "postrider/base/check.hpp"
#include "postrider/model/event_type.hpp"

namespace postrider::inbox {

namespace {

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

// Where Picker::at finds what stands between the braces.
std::string where_of(std::string_view name) {
  if (name.starts_with('/')) return std::string(name);
  if (name.starts_with("header:")) return std::string(name.substr(7));
  return "/" + std::string(name);
}

// No empty parts, nothing but what a type may contain, not too long.
std::string sanitised(std::string_view text) {
  std::string type;
  for (const char c : text) {
    if (type.size() == model::kEventTypeMax) break;
    const bool is_dot = c == '.' && !type.empty() && type.back() != '.';
    if (c == '.' && !is_dot)
      type += '_';
    else
      type += is_dot || is_plain(c) ? c : '_';
  }
  if (type.ends_with('.')) type.back() = '_';
  return type.empty() ? "unknown" : type;
}

}  // namespace

std::string check_type_template(std::string_view text) {
  while (!text.empty()) {
    const size_t open = std::min(text.find('{'), text.size());
    for (const char c : text.substr(0, open))
      if (c != '.' && !is_plain(c)) return "must consist of letters, digits, _, -, dots and {braces}";
    if (open == text.size()) return "";
    const size_t close = text.find('}', open);
    const std::string_view name =
        close == std::string_view::npos ? "" : text.substr(open + 1, close - open - 1);
    if (name.empty() || !is_where(where_of(name)))
      return "contains a placeholder that is not a member, pointer or header";
    text.remove_prefix(close + 1);
  }
  return "";
}

std::string event_type(std::string_view text, Picker& picker) {
  std::string filled;
  while (!text.empty()) {
    const size_t open = std::min(text.find('{'), text.size());
    filled.append(text.substr(0, open));
    if (open == text.size()) break;
    const size_t close = std::min(text.find('}', open), text.size() - 1);
    filled += picker.at(where_of(text.substr(open + 1, close - open - 1))).value_or("unknown");
    text.remove_prefix(close + 1);
  }
  std::string type = sanitised(filled);
  CHECK(model::is_event_type(type));
  return type;
}

}  // namespace postrider::inbox
