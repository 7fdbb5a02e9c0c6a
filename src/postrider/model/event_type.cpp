#include "postrider/model/event_type.hpp"

#include <algorithm>

namespace postrider::model {

bool is_event_type(std::string_view text) {
  if (text.empty() || text.size() > kEventTypeMax) return false;
  bool in_word = false;
  for (const char c : text) {
    if (c == '.') {
      if (!in_word) return false;
      in_word = false;
    } else if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
               c == '-') {
      in_word = true;
    } else {
      return false;
    }
  }
  return in_word;
}

bool is_version(std::string_view text) {
  const auto allowed = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= kVersionMax && std::all_of(text.begin(), text.end(), allowed);
}

bool is_pattern(std::string_view text) {
  if (text == "*") return true;
  if (text.ends_with(".*")) text.remove_suffix(2);
  return is_event_type(text);
}

std::vector<std::string> patterns_matching(std::string_view type) {
  if (type.size() > kEventTypeMax) return {};  // the work grows with the square of the length
  std::vector<std::string> patterns{std::string(type)};
  for (size_t dot = type.rfind('.'); dot != std::string_view::npos && dot > 0; dot = type.rfind('.', dot - 1))
    patterns.push_back(std::string(type.substr(0, dot)) + ".*");
  patterns.emplace_back("*");
  return patterns;
}

}  // namespace postrider::model
