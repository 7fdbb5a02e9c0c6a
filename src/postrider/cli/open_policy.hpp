// For what the person at this command line chose to talk to: every address is fine.
#pragma once

#include "postrider/http/client/guard.hpp"

namespace postrider::cli {

inline http::GuardPolicy open_policy() {
  http::GuardPolicy policy;
  policy.allow_http = true;
  policy.allow_networks = {*http::Network::parse("0.0.0.0/0"), *http::Network::parse("::/0")};
  policy.allow_ports = {{1, 65535}};
  return policy;
}

}  // namespace postrider::cli
