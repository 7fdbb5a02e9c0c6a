// Addresses as settings spell them. Numbers are compared, never strings.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace postrider::config {

// "10.0.0.0/8", "::1/128"; without a prefix length, the one address.
struct Network {
  std::array<uint8_t, 16> address{};  // IPv4 in the first four bytes
  bool is_v6 = false;
  int prefix_bits = 0;

  bool operator==(const Network&) const = default;
  bool contains(const Network& other) const;
  std::string text() const;
  // Bits behind the prefix must be zero: "10.1.2.3/8" is more likely a slip than a wish.
  static std::optional<Network> parse(std::string_view text);
};

struct PortRange {
  int first = 0;
  int last = 0;
  bool operator==(const PortRange&) const = default;
};

// "127.0.0.1:8090", "[::1]:8090", "example.internal:8090".
struct HostPort {
  std::string host;  // without brackets
  int port = 0;
  bool operator==(const HostPort&) const = default;
  std::string text() const;
  static std::optional<HostPort> parse(std::string_view text);
};

}  // namespace postrider::config
