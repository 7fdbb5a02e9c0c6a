// Whether a pattern (`invoice.paid`, `invoice.*`, `*`) matches an event type. Fan-out does not use this: it
// looks up patterns_matching() instead.
#pragma once

#include <string_view>

namespace postrider::model {

inline constexpr auto pattern_rule = "must be an event type like invoice.paid, a prefix like invoice.*, or *";

// `pattern` is valid: see is_pattern().
inline bool matches(std::string_view pattern, std::string_view type) {
  if (pattern == "*") return true;
  if (!pattern.ends_with(".*")) return pattern == type;
  const std::string_view prefix = pattern.substr(0, pattern.size() - 1);  // with its dot
  return type.size() > prefix.size() && type.starts_with(prefix);
}

}  // namespace postrider::model
