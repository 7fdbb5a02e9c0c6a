// "Did you mean …?", for settings and for commands.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace postrider::config {

// The candidate with the smallest edit distance, if it is small enough to be a typo; otherwise empty.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace postrider::config
