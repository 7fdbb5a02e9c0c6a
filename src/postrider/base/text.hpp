// Text from strangers.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace postrider::base {

// The length of the well-formed UTF-8 character at the start of `text`, 0 if there is none.
size_t character_length(std::string_view text);

// UTF-8 without NUL: what a text column of Postgres can hold.
bool is_storable(std::string_view text);

// As Postgres takes it: NUL and what is no UTF-8 are replaced, and what is too long ends between two
// characters.
std::string storable(std::string_view text, size_t bytes_max);

}  // namespace postrider::base
