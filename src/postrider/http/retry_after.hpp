// The Retry-After header field.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "postrider/base/time.hpp"

namespace postrider::http {

inline constexpr std::chrono::seconds kRetryAfterMax = std::chrono::hours(24);

// Parses seconds, or an HTTP date in any of its three formats. A date in the past is 0 s; the maximum is
// kRetryAfterMax. Returns no value if the header cannot be parsed.
std::optional<std::chrono::seconds> parse_retry_after(std::string_view value, base::Timestamp now);

}  // namespace postrider::http
