#pragma once

#include <string>

namespace postrider::base {

// The name of this machine, for display; "unknown" when it has none.
std::string host_name();

}  // namespace postrider::base
