// The secret that `listen` signs with: the same in every run for a profile and a tenant, so that it can stay
// in a developer's .env file. Derived from a random seed in $XDG_CONFIG_HOME/postrider/listen.seed (0600).
#pragma once

#include <string>

#include "postrider/cli/invocation.hpp"

namespace postrider::cli {

// whsec_…; `scope` is a tenant. A new one in each run if there is no home directory to keep the seed in.
std::string listen_secret(Invocation& in, const std::string& scope);

}  // namespace postrider::cli
