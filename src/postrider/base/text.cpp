#include "postrider/base/text.hpp"

#include <algorithm>
#include <cstdint>

namespace postrider::base {

size_t character_length(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0}; };
  const auto follows = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const bool is_overlong = first == 0xe0 && byte(1) < 0xa0;
    const bool is_surrogate = first == 0xed && byte(1) >= 0xa0;
    return follows(1) && follows(2) && !is_overlong && !is_surrogate ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool is_overlong = first == 0xf0 && byte(1) < 0x90;
    const bool is_beyond = first == 0xf4 && byte(1) >= 0x90;
    return follows(1) && follows(2) && follows(3) && !is_overlong && !is_beyond ? 4 : 0;
  }
  return 0;
}

bool is_storable(std::string_view text) {
  while (!text.empty()) {
    const size_t length = text.front() == '\0' ? 0 : character_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string storable(std::string_view text, size_t bytes_max) {
  constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD
  std::string kept;
  while (!text.empty()) {
    const size_t length = text.front() == '\0' ? 0 : character_length(text);
    const std::string_view next = length == 0 ? kReplacement : text.substr(0, length);
    if (kept.size() + next.size() > bytes_max) break;
    kept += next;
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return kept;
}

std::string lowered(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = lower(c);
  return result;
}

}  // namespace postrider::base
