// Text from outside the process.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace postrider::base {

// The length of the well-formed UTF-8 character at the start of `text`, 0 if there is none.
size_t character_length(std::string_view text);

// UTF-8 without NUL: what a text column of Postgres can hold.
bool is_storable(std::string_view text);

// Text that Postgres accepts: NUL and invalid UTF-8 are replaced, and text that is too long is cut between
// two characters.
std::string storable(std::string_view text, size_t bytes_max);

// Case folding of ASCII letters. Other bytes stay as they are.
constexpr char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
std::string lowered(std::string_view text);
inline bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace postrider::base
