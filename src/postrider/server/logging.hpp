#pragma once

#include "postrider/config/config.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::server {

// The process's log on stderr, as configured.
telemetry::Log::Options log_options(const config::Config& config);

}  // namespace postrider::server
