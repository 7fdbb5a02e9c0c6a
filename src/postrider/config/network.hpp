// Addresses as settings spell them. Numbers are compared, never strings.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "postrider/base/ip_address.hpp"

namespace postrider::config {

using base::IpAddress;
using base::Network;
using base::PortRange;

// "127.0.0.1:8090", "[::1]:8090", "example.internal:8090".
struct HostPort {
  std::string host;  // without brackets
  int port = 0;
  bool operator==(const HostPort&) const = default;
  std::string text() const;
  static std::optional<HostPort> parse(std::string_view text);
};

}  // namespace postrider::config
