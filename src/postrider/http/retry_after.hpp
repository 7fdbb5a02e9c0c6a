// The Retry-After header field.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "postrider/base/time.hpp"

namespace postrider::http {

inline constexpr std::chrono::seconds kRetryAfterMax = std::chrono::hours(24);

// Seconds, or an HTTP date in any of its three forms. A date in the past is 0 s, and a longer time than
// kRetryAfterMax is cut to it. Nothing if the value cannot be parsed.
std::optional<std::chrono::seconds> parse_retry_after(std::string_view value, base::Timestamp now);

}  // namespace postrider::http
