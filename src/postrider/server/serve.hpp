// Runs a node: builds everything in order, serves until a signal, and takes it down in reverse.
#pragma once

#include "postrider/config/load.hpp"

namespace postrider::server {

// Returns the exit code. A second signal ends the process at once.
int serve(const config::Loaded& loaded);

}  // namespace postrider::server
