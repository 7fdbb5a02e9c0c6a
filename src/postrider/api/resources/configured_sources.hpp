// The [[source]] tables of the configuration file, read by the rules of POST /v1/sources.
#pragma once

#include <vector>

#include "postrider/config/config.hpp"
#include "postrider/inbox/sources.hpp"
#include "postrider/registry/secret_reference.hpp"

namespace postrider::api {

// Secrets that are references are looked up under the policy; without one they are only checked by their
// form. Throws config::ConfigError, which names the file's line and never contains a secret.
std::vector<inbox::ConfiguredSource> read_configured_sources(const config::Config& config,
                                                             const registry::ReferencePolicy* policy);

}  // namespace postrider::api
