// Rules for the custom headers of endpoints.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace postrider::api {

// Shown in place of a header's value.
inline constexpr std::string_view masked_value = "***";

// The reason why the header is not allowed, as the end of "The header …", or no value. Rejected are names
// that are no tokens, those that belong to the connection (RFC 9110 §7.6.1), to the message's framing and to
// postrider, and values that are not printable ASCII.
std::optional<std::string> why_not_header(std::string_view name, std::string_view value, size_t bytes_max);

}  // namespace postrider::api
