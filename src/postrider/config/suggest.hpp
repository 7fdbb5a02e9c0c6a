// "Did you mean …?", for settings and for commands.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace postrider::config {

// The candidate that is fewest edits away, if that is few enough to be a slip; otherwise empty.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace postrider::config
