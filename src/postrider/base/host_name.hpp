#pragma once

#include <string>

namespace postrider::base {

// Of this machine, for people; "unknown" when it has none.
std::string host_name();

}  // namespace postrider::base
