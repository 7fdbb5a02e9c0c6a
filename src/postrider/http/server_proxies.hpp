// Whose X-Forwarded-For is believed, and what follows for a client's address.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/http/request.hpp"

namespace postrider::http {

class TrustedProxies {
 public:
  // Addresses and CIDRs, IPv4 or IPv6. Throws std::invalid_argument that names the one it cannot read.
  explicit TrustedProxies(const std::vector<std::string>& networks);
  ~TrustedProxies();

  bool trusts(const std::string& address) const;
  // Walks X-Forwarded-For from the right for as long as the address at hand is a trusted proxy, so that
  // whatever the client itself put there is never reached.
  std::string client_address(const std::string& peer, const std::vector<Field>& fields) const;

 private:
  struct Networks;
  std::unique_ptr<Networks> networks_;
};

}  // namespace postrider::http
