#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace postrider::base {

std::string hex_encode(std::string_view bytes);  // lower case
std::optional<std::string> hex_decode(std::string_view text);

std::string base64_encode(std::string_view bytes);     // standard alphabet, padded
std::string base64url_encode(std::string_view bytes);  // URL-safe alphabet, without padding
// Strict: standard alphabet, padding required, no white space.
std::optional<std::string> base64_decode(std::string_view text);

// The contents of a JSON string: quotes, backslashes and control characters escaped; invalid UTF-8 replaced
// by U+FFFD.
void append_json_escaped(std::string& out, std::string_view text);
std::string json_quoted(std::string_view text);
std::string json_pointer_token(std::string_view name);  // a field's name as part of a JSON pointer

}  // namespace postrider::base
