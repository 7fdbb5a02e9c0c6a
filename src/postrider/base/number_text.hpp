// Numbers formatted for people.
#pragma once

#include <cstdint>
#include <string>

namespace postrider::base {

// "262,144"
inline std::string grouped(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

}  // namespace postrider::base
