// IP addresses, networks and ports. They are compared as numbers, never as strings.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace postrider::base {

// IPv4 is kept in the first four bytes. An IPv4-mapped IPv6 address is a different value until unmapped().
struct IpAddress {
  std::array<uint8_t, 16> bytes{};
  bool is_v6 = false;

  static IpAddress v4(uint32_t host_order);
  static IpAddress v6(const std::array<uint8_t, 16>& network_order);
  // A strict dotted quad (no leading zeros, no short forms) or an IPv6 address without brackets or zone id.
  static std::optional<IpAddress> parse(std::string_view text);

  uint32_t v4_number() const;  // host order; IPv4 only
  // ::ffff:a.b.c.d becomes a.b.c.d, everything else stays as it is.
  IpAddress unmapped() const;
  std::string to_string() const;

  auto operator<=>(const IpAddress&) const = default;
};

struct Network {
  IpAddress address;  // host bits are zero
  int prefix_bits = 0;

  // "10.0.0.0/8", "::1/128"; a bare address is a network of one. Host bits must be zero.
  static std::optional<Network> parse(std::string_view text);
  bool contains(const IpAddress& candidate) const;  // false for the other family
  std::string text() const;                         // with its prefix: "10.1.2.3/32"
  auto operator<=>(const Network&) const = default;
};

struct PortRange {
  uint16_t first = 0;
  uint16_t last = 0;
  auto operator<=>(const PortRange&) const = default;
};

}  // namespace postrider::base
