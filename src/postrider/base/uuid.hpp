#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace postrider::base {

// 16 bytes in network order, compared as Postgres compares uuid.
struct Uuid {
  std::array<uint8_t, 16> bytes{};

  auto operator<=>(const Uuid&) const = default;
  bool is_nil() const { return *this == Uuid{}; }

  std::string hex() const;   // 32 lower-case digits
  std::string text() const;  // 8-4-4-4-12
  static std::optional<Uuid> from_hex(
      std::string_view text);  // 32 digits, dashes allowed where text() puts them
};

}  // namespace postrider::base

template <>
struct std::hash<postrider::base::Uuid> {
  size_t operator()(const postrider::base::Uuid& id) const noexcept {
    uint64_t high, low;
    std::memcpy(&high, id.bytes.data(), 8);
    std::memcpy(&low, id.bytes.data() + 8, 8);
    return (high * 0x9E3779B97F4A7C15ULL) ^ (low + (high >> 29));
  }
};
