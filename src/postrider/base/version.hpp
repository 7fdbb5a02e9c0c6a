#pragma once

#include <string_view>

namespace postrider::base {

inline constexpr std::string_view kVersion = "0.1.0";  // also in CMakeLists.txt

}  // namespace postrider::base
