// The user who runs a command that changes the database directly, for the audit log.
#pragma once

#include "postrider/registry/caller.hpp"

namespace postrider::cli {

// "user@host", as this machine knows them.
registry::Caller machine_user();

}  // namespace postrider::cli
