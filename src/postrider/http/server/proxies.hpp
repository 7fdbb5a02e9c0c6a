// The proxies whose X-Forwarded-For is trusted, and the resulting client address.
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
  // Walks X-Forwarded-For from the right as long as the current address is a trusted proxy, so that entries
  // added by the client itself are never used.
  std::string client_address(const std::string& peer, const std::vector<Field>& fields) const;

 private:
  std::vector<base::Network> networks_;
};

}  // namespace postrider::http
