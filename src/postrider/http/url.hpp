// Endpoint URLs: a strict parser. Validates the form once, when a URL is saved or loaded. Whether postrider
// may connect there is decided by AddressGuard.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "postrider/base/ip_address.hpp"
#include "postrider/base/result.hpp"

namespace postrider::http {

using base::IpAddress;

inline constexpr size_t kUrlBytesMax = 2048;

enum class HostKind : uint8_t {
  address,     // a literal IPv4 or IPv6 address
  name,        // a DNS name
  local_name,  // localhost, *.localhost, *.local, *.internal, *.home.arpa, single labels: names of nearby
               // machines
};

// Kept small: every lane has one. Host and authority are parts of the origin.
struct Url {
  bool is_https = false;
  HostKind host_kind = HostKind::name;
  uint16_t port = 0;
  std::string origin;  // "https://host:port", always with the port: the key of the connection pool
  std::string target;  // path and query as given, "/" if empty
  std::optional<IpAddress> address;  // when host_kind is address

  // Lower case, no brackets, no trailing dot; addresses in canonical form.
  std::string_view host() const;
  // For the Host header: brackets around IPv6, the port when it is not the scheme's own.
  std::string_view authority() const;

  bool operator==(const Url&) const = default;
};

enum class UrlError : uint8_t {
  too_long,
  bad_character,  // control, space, non-ASCII, backslash
  bad_scheme,     // neither http:// nor https://
  has_userinfo,
  has_fragment,  // rejected rather than dropped: it is never sent, so its author expects something else
  empty_host,
  bad_host,     // not a DNS name
  bad_address,  // looks like an address, but is not a strict one (decimal, octal, hex, short, trailing dot,
                // zone id)
  bad_port,
};
// One sentence for a support person, e.g. "The URL must not contain a user name or password."
std::string_view describe(UrlError error);

base::Result<Url, UrlError> parse_url(std::string_view text);

}  // namespace postrider::http
