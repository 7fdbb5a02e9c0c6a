// Whose X-Forwarded-For is believed, and what follows for a client's address.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "postrider/base/ip_address.hpp"
#include "postrider/http/request.hpp"

namespace postrider::http {

class TrustedProxies {
 public:
  explicit TrustedProxies(std::vector<base::Network> networks) : networks_(std::move(networks)) {}

  bool trusts(std::string_view address) const;
  // Walks X-Forwarded-For from the right for as long as the address at hand is a trusted proxy, so that
  // whatever the client itself put there is never reached.
  std::string client_address(const std::string& peer, const std::vector<Field>& fields) const;

 private:
  std::vector<base::Network> networks_;
};

}  // namespace postrider::http
