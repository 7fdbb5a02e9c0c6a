// Whose X-Forwarded-For is believed, and what follows for a client's address.
#pragma once

#include <string>
#include <vector>

#include "postrider/http/ip_address.hpp"
#include "postrider/http/request.hpp"

namespace postrider::http {

class TrustedProxies {
 public:
  // Addresses and CIDRs, IPv4 or IPv6. Throws std::invalid_argument that names the one it cannot read.
  explicit TrustedProxies(const std::vector<std::string>& networks);

  bool trusts(std::string_view address) const;
  // Walks X-Forwarded-For from the right for as long as the address at hand is a trusted proxy, so that
  // whatever the client itself put there is never reached.
  std::string client_address(const std::string& peer, const std::vector<Field>& fields) const;

 private:
  std::vector<Network> networks_;
};

}  // namespace postrider::http
